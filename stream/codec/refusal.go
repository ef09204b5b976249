package codec

import "slices"

// Reason classifies a refusal. The set is closed, because it is a metric label.
type Reason string

// Reasons of a Refusal.
const (
	Malformed      Reason = "malformed"        // not of the stream's format, or nested too deeply
	TooLarge       Reason = "too_large"        // more bytes than max_payload, or more entries than max_batch
	Empty          Reason = "empty"            // no bytes, or an empty batch
	MissingFeature Reason = "missing_feature"  // a named feature is absent
	UnknownFeature Reason = "unknown_feature"  // a key that is neither a feature nor known
	Repeated       Reason = "repeated_key"     // a key that occurs twice in one object
	WrongDimension Reason = "wrong_dimension"  // an array of another length
	NotANumber     Reason = "not_a_number"     // null, text, NaN, or beyond the range of a float64
	BadLabel       Reason = "bad_label"        // a label that is not a text of 1 to 256 bytes, or that a model has given
	BadWeight      Reason = "bad_weight"       // a weight that is not a number above 0 and at most 100
	BadID          Reason = "bad_id"           // an id that is neither a text of 1 to 128 bytes nor a number, or a label without one; a payload without its device
	UnknownID      Reason = "unknown_id"       // no sample with that id waits for its label
	TooLate        Reason = "too_late"         // a label of a sample that was labelled before and is not kept any more
	AmbiguousID    Reason = "ambiguous_id"     // samples of several devices wait under that id
	UnknownClass   Reason = "unknown_class"    // the model has closed classes without that label
	TooManyClasses Reason = "too_many_classes" // one class more than the model may have
	BadRequest     Reason = "bad_request"      // an unknown command, or one for another model
	Retained       Reason = "retained"         // an old message that the broker kept
	Unrouted       Reason = "unrouted"         // a topic without a stream
	BadTopic       Reason = "bad_topic"        // a topic that MQTT forbids: empty, with a wildcard, with NUL, or invalid UTF-8; or one with too long a device name, or of a request whose response would have too long a topic
	Unpredictable  Reason = "unpredictable"    // the model refused the features
	Fault          Reason = "fault"            // a panic of this program over the message
)

// Reasons lists every reason.
func Reasons() []Reason {
	return []Reason{Malformed, TooLarge, Empty, MissingFeature, UnknownFeature, Repeated, WrongDimension, NotANumber, BadLabel, BadWeight,
		BadID, UnknownID, TooLate, AmbiguousID, UnknownClass, TooManyClasses, BadRequest, Retained, Unrouted, BadTopic, Unpredictable, Fault}
}

// Refusal reports input that is not learnt.
type Refusal struct {
	Topic  string
	Reason Reason
	Err    error // cause, with its place in the payload

	// Devices are those that the refused entry names, as in Reading, or those of all entries that have
	// a label in common. None where the payload names no device.
	Devices []string
}

// of sets the devices where there are none, but for "", and returns the refusal.
func (r *Refusal) of(devices ...string) *Refusal {
	if len(r.Devices) == 0 && !slices.Contains(devices, "") {
		r.Devices = devices
	}
	return r
}

// Error returns the topic, the reason and the cause.
func (r *Refusal) Error() string {
	return "codec: refused a message on " + r.Topic + ": " + string(r.Reason) + ": " + r.Err.Error()
}

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }
