package codec

import "bytes"

// valueCodec reads one decimal number; the topic names the feature.
type valueCodec struct{}

func (valueCodec) decode(payload []byte) ([]Reading, *Refusal) {
	v, err := decimal(string(bytes.TrimSpace(payload)))
	if err != nil {
		return nil, Refuse(NotANumber, "%w", err)
	}
	return []Reading{{X: []float64{v}}}, nil
}
