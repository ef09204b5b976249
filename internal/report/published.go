package report

// Published describes the predictions that a daemon published for the rows of a
// replayed file, in a Report whose scores judge them.
type Published struct {
	Node       string    `json:"node"`
	Model      string    `json:"model"`
	Rows       int       `json:"rows"`       // sent
	Unanswered int       `json:"unanswered"` // rows without a received prediction
	Queries    int       `json:"queries"`    // labels that the daemon requested
	Latency    Durations `json:"latency_s"`  // from the arrival of a row to its prediction, as the daemon measured it
	RoundTrip  Durations `json:"round_trip_s"`
}
