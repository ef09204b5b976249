package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"edge/stream"
	"edge/stream/codec"
)

const labelTimeout = 5 * time.Second // for a label to become durable

// labelRequest is the body of a POST to …/label.
type labelRequest struct {
	ID     sampleID    `json:"id"`     // of the sample; "" for the newest one
	Device string      `json:"device"` // of the sample
	Seq    uint64      `json:"seq"`    // of the sample's prediction
	Label  any         `json:"label"`
	Weight json.Number `json:"weight"` // "": 1
}

// sampleID is the id of a sample, a text or a number in JSON.
type sampleID string

// UnmarshalJSON reads a text, or a number as it is written.
func (id *sampleID) UnmarshalJSON(raw []byte) error {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return err
	}
	switch v := v.(type) {
	case nil:
	case string:
		*id = sampleID(v)
	case json.Number:
		*id = sampleID(v)
	default:
		return errors.New("id is neither a text nor a number")
	}
	return nil
}

// readLabel reads the body of a request. The error is a text for the client.
func readLabel(from io.Reader) (ask labelRequest, err error) {
	text, err := io.ReadAll(from)
	if why := codec.CheckJSON(text); err == nil && why != nil {
		err = why.Err
	}
	if err == nil {
		body := json.NewDecoder(bytes.NewReader(text))
		body.DisallowUnknownFields()
		body.UseNumber()
		err = body.Decode(&ask)
	}
	switch {
	case err != nil:
		return ask, fmt.Errorf(`want {"id": …, "device": …, "label": …}: %w`, err)
	case ask.ID == "" && ask.Seq == 0:
		return ask, errors.New("id is missing: want that of the sample, or last for the newest one")
	}
	return ask, nil
}

// label passes the label of a sample to the node, if the configuration allows it.
func (w *Server) label(rw http.ResponseWriter, r *http.Request) {
	model, d := r.PathValue("model"), w.monitor.deployment() // a reload may replace it while the body comes
	switch media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); {
	case !d.Config.Control.Enabled:
		refuseRequest(rw, http.StatusForbidden, "labels are not taken here: control.enabled is false")
		return
	case media != "application/json":
		refuseRequest(rw, http.StatusUnsupportedMediaType, "want application/json")
		return
	case d.Model(model) == nil:
		refuseRequest(rw, http.StatusNotFound, "there is no such model")
		return
	case !d.Node.Stats().Models[model].Learning:
		refuseRequest(rw, http.StatusConflict, "learning is switched off")
		return
	}
	ask, err := readLabel(r.Body)
	if err != nil {
		refuseRequest(rw, http.StatusBadRequest, err.Error())
		return
	}
	if ask.ID == "" { // a sample without an id can be labelled while it is the newest
		if seq, ok := w.monitor.newest(model); !ok || seq != ask.Seq {
			refuseRequest(rw, http.StatusConflict, "a newer sample has come, and this one has no id to find it by")
			return
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), labelTimeout)
	defer cancel()
	err = w.monitor.deployment().Node.Label(ctx, stream.LateLabel{Model: model, Device: ask.Device, ID: string(ask.ID), Seq: ask.Seq, Label: ask.Label, Weight: ask.Weight, Source: "page"})
	var refusal *codec.Refusal
	switch {
	case err == nil:
		w.monitor.Labelled(model, ask.Seq, fmt.Sprint(ask.Label))
		reply(rw, http.StatusOK, map[string]string{"status": "ok"})
	case errors.As(err, &refusal):
		refuseRequest(rw, http.StatusUnprocessableEntity, refusal.Err.Error())
	default:
		refuseRequest(rw, http.StatusServiceUnavailable, err.Error())
	}
}
