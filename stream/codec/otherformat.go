package codec

import (
	"bytes"
	"unicode/utf8"

	"github.com/fxamacker/cbor/v2"
	"github.com/tidwall/gjson"
)

// way is the way out of a format that is not read.
const way = "; a flow of Node-RED, or Telegraf, can make JSON of it"

// isCBOR describes the payloads of a stream with format cbor.
const isCBOR = "CBOR, which format: cbor reads"

// otherFormat describes the format of a payload that is not of that of its stream, with the way
// out, from its first bytes; "" where it is not known.
func otherFormat(payload []byte) string {
	switch first := payload[0]; {
	case isJSON(payload):
		return "JSON, which format: json reads"
	case first >= 0xa0 && first < 0xc0, first >= 0x80 && first < 0xdc && cbor.Wellformed(payload) == nil: // a map; an array or a tag
		return isCBOR
	case first >= 0x80 && first < 0xa0 || first >= 0xdc && first < 0xe0: // a map or an array
		return "MessagePack, which is not read" + way
	case first == 0x08 || first == 0x0a || first == 0x12: // field 1 or 2
		return "Protocol Buffers, such as Sparkplug B, which are not read" + way
	case first == 0x78 && len(payload) > 1 && bytes.IndexByte([]byte{0x01, 0x5e, 0x9c, 0xda}, payload[1]) >= 0: // RFC 1950
		return "compressed by zlib, which is not read: compression: auto reads gzip and zstd"
	}
	return ""
}

// beginsJSON reports whether a payload begins, after white space, as an object or an array of JSON does.
func beginsJSON(payload []byte) bool { return holdsJSON(string(bytes.TrimSpace(payload))) }

// isJSON reports whether a payload is an object or an array of JSON.
func isJSON(payload []byte) bool { return beginsJSON(payload) && gjson.ValidBytes(payload) }

// unlessJSON returns err, the refusal of a payload of lines; or one that names the format, if the payload is JSON.
func unlessJSON(payload []byte, err *Refusal) *Refusal {
	if isJSON(payload) {
		return Refuse(Malformed, "it looks like %s", otherFormat(payload))
	}
	return err
}

// notText refuses a payload that is no text, with its format where that is known.
func notText(payload []byte) *Refusal {
	if beginsJSON(payload) {
		at := 0
		for r, n := utf8.DecodeRune(payload); r != utf8.RuneError || n > 1; r, n = utf8.DecodeRune(payload[at:]) {
			at += n
		}
		return Refuse(Malformed, "byte %d is not valid UTF-8, in which JSON is written: is the text in Latin-1?", at+1)
	}
	if other := otherFormat(payload); other != "" {
		return Refuse(Malformed, "not a text: it looks like %s", other)
	}
	return Refuse(Malformed, "not valid UTF-8: is it of another format?")
}
