package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"edge/internal/timing"
)

const (
	followEvery = time.Second      // between two checks for changes
	quietWithin = 15 * time.Second // without changes, before a comment is sent
)

// follow sends server-sent events: node, a nodeView, and for ?model=NAME also model, a
// modelView; first the present state, then each change, once a second. They end if a reload
// removes the model.
func (s *Server) follow(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("model")
	if name != "" && s.monitor.model(name) == nil {
		refuseRequest(w, http.StatusNotFound, noModel)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx as a proxy would keep events back until it has some kB of them
	events := eventStream{to: w, control: http.NewResponseController(w), timeout: s.Timeouts.ViewerReads}
	timing.Every(ctx, followEvery, func() {
		served := s.monitor.model(name) // a reload may have replaced or removed it
		events.send("node", s.monitor.describeNode())
		if served != nil {
			events.send("model", s.monitor.describeModel(served))
		}
		if events.flush() != nil || served == nil && name != "" {
			cancel()
		}
	})
}

// eventStream writes server-sent events, except repetitions of the last one of their
// kind.
type eventStream struct {
	to      http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration // for a viewer to read an event
	last    map[string][]byte
	quiet   time.Time // the time of the last event or comment
	wrote   bool
}

func (s *eventStream) send(kind string, v any) {
	text, err := json.Marshal(v)
	if err != nil || bytes.Equal(text, s.last[kind]) {
		return
	}
	if s.last == nil {
		s.last = map[string][]byte{}
	}
	s.last[kind], s.wrote = text, true
	s.control.SetWriteDeadline(time.Now().Add(s.timeout))
	fmt.Fprintf(s.to, "event: %s\ndata: %s\n\n", kind, text)
}

// flush sends the written events. An error means that the viewer has gone.
func (s *eventStream) flush() error {
	now := time.Now()
	if !s.wrote && now.Sub(s.quiet) < quietWithin {
		return nil
	}
	if !s.wrote {
		fmt.Fprint(s.to, ": nothing new\n\n")
	}
	s.quiet, s.wrote = now, false
	s.control.SetWriteDeadline(now.Add(s.timeout))
	return s.control.Flush()
}
