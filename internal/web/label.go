package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"edge/stream"
	"edge/stream/codec"
)

const labelTimeout = 5 * time.Second // for a label to become durable

// readLabel reads the body of a request. Its keys are exact, as those of a message are. The error is a
// text for the client.
func readLabel(from io.Reader) (ask stream.LateLabel, err error) {
	text, err := io.ReadAll(from)
	if why := codec.CheckJSON(text); err == nil && why != nil {
		err = why.Err
	}
	body := gjson.ParseBytes(text)
	if err == nil && !body.IsObject() {
		err = errors.New("the body is no object")
	}
	if err == nil {
		for key, value := range body.All() {
			if err = setMember(&ask, key.Str, value); err != nil {
				break
			}
		}
	}
	switch {
	case err != nil:
		return ask, fmt.Errorf(`want {"id": …, "device": …, "label": …}: %w`, err)
	case ask.ID == "" && ask.Seq == 0:
		return ask, errors.New("id is missing: want that of the sample, or last for the newest one")
	}
	return ask, nil
}

// setMember takes one member of the body; null counts as absent.
func setMember(ask *stream.LateLabel, key string, v gjson.Result) (err error) {
	if v.Type == gjson.Number {
		v.Str = v.Raw
	}
	want := ""
	switch key {
	case "id":
		if ask.ID = v.Str; v.Type != gjson.String && v.Type != gjson.Number {
			want = "a text or a number"
		}
	case "device":
		if ask.Device = v.Str; v.Type != gjson.String {
			want = "a text"
		}
	case "seq":
		if ask.Seq, err = strconv.ParseUint(v.Raw, 10, 64); err != nil {
			want = "a whole number"
		}
	case "label": // which the node checks
		if ask.Label = v.Value(); v.Type == gjson.Number {
			ask.Label = json.Number(v.Raw)
		}
		if err := codec.CheckText(v); err != nil {
			return fmt.Errorf("label %w", err)
		}
	case "weight":
		if ask.Weight = json.Number(v.Str); v.Type != gjson.Number {
			want = "a number"
		}
	default:
		return fmt.Errorf("unknown key %.40q: there are id, device, seq, label and weight", key)
	}
	if want != "" && v.Type != gjson.Null {
		return fmt.Errorf("%s is %.40s: want %s", key, v.Raw, want)
	}
	return nil
}

// label passes the label of a sample to the node, if the configuration allows it.
func (s *Server) label(w http.ResponseWriter, r *http.Request) {
	model, d := r.PathValue("model"), s.monitor.deployment() // a reload may replace it while the body comes
	switch media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); {
	case !d.Config.Control.Enabled:
		refuseRequest(w, http.StatusForbidden, "labels are not taken here: control.enabled is false")
		return
	case media != "application/json":
		refuseRequest(w, http.StatusUnsupportedMediaType, "want application/json")
		return
	case d.Model(model) == nil:
		refuseRequest(w, http.StatusNotFound, noModel)
		return
	case !d.Node.Stats().Models[model].Learning:
		refuseRequest(w, http.StatusConflict, "learning is switched off")
		return
	}
	ask, err := readLabel(r.Body)
	if err != nil {
		refuseRequest(w, http.StatusBadRequest, err.Error())
		return
	}
	if ask.ID == "" { // a sample without an id can be labelled while it is the newest
		if seq, ok := s.monitor.newest(model); !ok || seq != ask.Seq {
			refuseRequest(w, http.StatusConflict, "a newer sample has come, and this one has no id to find it by")
			return
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), labelTimeout)
	defer cancel()
	ask.Model, ask.Source = model, "page"
	err = s.monitor.deployment().Node.Label(ctx, ask)
	var refusal *codec.Refusal
	switch {
	case err == nil:
		s.monitor.Labelled(model, ask.Seq, fmt.Sprint(ask.Label))
		reply(w, http.StatusOK, map[string]string{"status": "ok"})
	case errors.As(err, &refusal):
		refuseRequest(w, http.StatusUnprocessableEntity, refusal.Err.Error())
	default:
		refuseRequest(w, http.StatusServiceUnavailable, err.Error())
	}
}
