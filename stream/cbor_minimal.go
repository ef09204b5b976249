//go:build minimal

package stream

import "errors"

// CBOR is left out of the binary for devices: the library is 0.3 MB of it.
const withCBOR = false

var errNoCBOR = errors.New("cbor: not in this build")

type (
	cborCodec   struct{}
	cborEncoder struct{}
)

func newCBORCodec(*shape) (*cborCodec, error) { return nil, errNoCBOR }

func (*cborCodec) decode([]byte) ([]Reading, *Refusal) {
	return nil, refuse(Malformed, "%w", errNoCBOR)
}

func newCBOREncoder() (*cborEncoder, error) { return nil, errNoCBOR }

func (*cborEncoder) encode(*Prediction) ([]byte, error) { return nil, errNoCBOR }

func unmarshalCBOR([]byte, any) error { return errNoCBOR }
