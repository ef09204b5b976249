package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/net/netutil"

	"edge/stream"
)

const (
	maxConnections = 64       // that are open at a time; others wait
	maxHeader      = 16 << 10 // bytes
	maxBody        = 4 << 10  // bytes
	maxScrapes     = 4        // of the metrics at a time
	readTimeout    = 10 * time.Second
	writeTimeout   = 20 * time.Second
	idleTimeout    = 60 * time.Second
	listenPause    = 10 * time.Second // between attempts
	labelTimeout   = 5 * time.Second  // for a label to become durable
	closeWithin    = 500 * time.Millisecond
)

// web serves the page, the API, the metrics and the health checks of a daemon.
type web struct {
	cfg      HTTP
	monitor  *monitor
	log      *slog.Logger
	listener net.Listener // nil while the address cannot be had
	hosts    map[string]bool
	viewers  chan struct{} // a token for everybody who follows the events
	closing  context.Context
}

// newWeb listens, and lets Run try again if that fails: a port that another
// program has taken must not keep a model from learning.
func newWeb(cfg HTTP, m *monitor, log *slog.Logger) *web {
	w := &web{cfg: cfg, monitor: m, log: log, viewers: make(chan struct{}, maxViewers), hosts: map[string]bool{"localhost": true}}
	if name, err := os.Hostname(); err == nil {
		name = strings.ToLower(name)
		w.hosts[name], w.hosts[name+".local"] = true, true
	}
	w.listen()
	return w
}

func (w *web) listen() {
	l, err := net.Listen("tcp", w.cfg.Listen)
	if err != nil {
		w.log.Error("the page and the metrics cannot be served; will keep trying; http.listen says where, nothing there switches it off", "listen", w.cfg.Listen, "error", err)
		return
	}
	if !loopback(l.Addr()) {
		w.log.Warn("the page and the metrics can be reached from other machines, and have no password", "listen", l.Addr().String(), "labels_allowed", w.monitor.now().cfg.Control.Enabled)
	}
	w.listener = l
}

// url is where the page is; "" if it is nowhere.
func (w *web) url() string {
	if w == nil || w.listener == nil {
		return ""
	}
	return "http://" + w.listener.Addr().String() + "/"
}

func loopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// run serves until ctx ends, and returns soon after.
func (w *web) run(ctx context.Context) {
	retry := time.NewTicker(listenPause)
	defer retry.Stop()
	for w.listener == nil {
		select {
		case <-retry.C:
			w.listen()
		case <-ctx.Done():
			return
		}
	}
	w.closing = ctx
	server := &http.Server{
		Handler:           w.handler(),
		ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader,
		ErrorLog:       slog.NewLogLogger(w.log.Handler(), slog.LevelDebug), // what clients do wrong
	}
	w.log.Info("serving the page and the metrics", "url", w.url())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(netutil.LimitListener(w.listener, maxConnections)) }()
	select {
	case err := <-ended:
		w.log.Error("the page and the metrics are not served any more", "error", err)
		return
	case <-ctx.Done():
	}
	patience, done := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
	defer done()
	if server.Shutdown(patience) != nil {
		server.Close()
	}
	<-ended
}

// close gives the address up, if run was never called.
func (w *web) close() {
	if w != nil && w.listener != nil {
		w.listener.Close()
	}
}

// handler routes requests.
func (w *web) handler() http.Handler {
	m := w.monitor
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", w.metrics())
	mux.HandleFunc("GET /healthz", func(rw http.ResponseWriter, r *http.Request) {
		h := healthOf(m.alive(aliveWithin))
		reply(rw, h.code(), h)
	})
	mux.HandleFunc("GET /readyz", func(rw http.ResponseWriter, r *http.Request) {
		h := healthOf(m.ready())
		reply(rw, h.code(), h)
	})
	mux.HandleFunc("GET /api/v1/models", func(rw http.ResponseWriter, r *http.Request) { reply(rw, http.StatusOK, m.describeNode()) })
	mux.HandleFunc("GET /api/v1/models/{model}", func(rw http.ResponseWriter, r *http.Request) {
		served := m.model(r.PathValue("model"))
		if served == nil {
			refuseRequest(rw, http.StatusNotFound, "there is no such model")
			return
		}
		reply(rw, http.StatusOK, m.describeModel(served))
	})
	mux.HandleFunc("GET /api/v1/events", w.follow)
	mux.Handle("POST /api/v1/models/{model}/label", http.NewCrossOriginProtection().Handler(http.HandlerFunc(w.label)))
	mux.HandleFunc("GET /{$}", servePage)
	if w.cfg.Pprof {
		serveProfiles(mux)
	}
	return w.guard(mux)
}

// metrics serves those of the daemon, its Go runtime and its process.
func (w *web) metrics() http.HandlerFunc {
	c, scrapes := newCollector(w.monitor), make(chan struct{}, maxScrapes)
	return func(rw http.ResponseWriter, r *http.Request) {
		select {
		case scrapes <- struct{}{}:
			defer func() { <-scrapes }()
		default:
			refuseRequest(rw, http.StatusServiceUnavailable, fmt.Sprintf("%d others read the metrics: try again", maxScrapes))
			return
		}
		rw.Header().Set("Content-Type", expositionType)
		c.collect().WriteTo(rw) // whoever asked has gone, if it fails
	}
}

// guard sets what holds for every answer. A name that another site made point
// at this machine gets nothing that only this machine may see: what listens on
// the loopback interface answers to addresses and to names of its own alone.
func (w *web) guard(next http.Handler) http.Handler {
	local := loopback(w.listener.Addr())
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		h := rw.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		if (local || r.Method != http.MethodGet && r.Method != http.MethodHead) && !w.ownHost(r.Host) {
			refuseRequest(rw, http.StatusForbidden, fmt.Sprintf("%.100q is not a name of this machine: use its address", r.Host))
			return
		}
		r.Body = http.MaxBytesReader(rw, r.Body, maxBody)
		next.ServeHTTP(rw, r)
	})
}

// ownHost reports whether a Host header is an address or a name of this machine.
func (w *web) ownHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return net.ParseIP(strings.Trim(host, "[]")) != nil || w.hosts[strings.ToLower(host)]
}

// labelRequest is the body of a POST to …/label.
type labelRequest struct {
	ID     string `json:"id"`     // of the sample; "" for the newest one
	Device string `json:"device"` // of the sample
	Seq    uint64 `json:"seq"`    // of the sample's prediction
	Label  string `json:"label"`
}

// label teaches the label of a sample, if the configuration allows it.
func (w *web) label(rw http.ResponseWriter, r *http.Request) {
	model := r.PathValue("model")
	switch media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); {
	case !w.monitor.now().cfg.Control.Enabled:
		refuseRequest(rw, http.StatusForbidden, "labels are not taken here: control.enabled is false")
		return
	case media != "application/json":
		refuseRequest(rw, http.StatusUnsupportedMediaType, "want application/json")
		return
	case w.monitor.model(model) == nil:
		refuseRequest(rw, http.StatusNotFound, "there is no such model")
		return
	}
	if !w.monitor.now().node.Stats().Models[model].Learning {
		refuseRequest(rw, http.StatusConflict, "learning is switched off")
		return
	}
	var ask labelRequest
	body := json.NewDecoder(r.Body)
	body.DisallowUnknownFields()
	if err := body.Decode(&ask); err != nil {
		refuseRequest(rw, http.StatusBadRequest, err.Error())
		return
	}
	if ask.ID == "" { // there is no other name for it than that it is the newest
		if seq, ok := w.monitor.newest(model); !ok || seq != ask.Seq {
			refuseRequest(rw, http.StatusConflict, "a newer sample has come, and this one has no id to find it by")
			return
		}
		ask.ID = "last"
	}
	ctx, cancel := context.WithTimeout(r.Context(), labelTimeout)
	defer cancel()
	err := w.monitor.now().node.Label(ctx, stream.LateLabel{Model: model, Device: ask.Device, ID: ask.ID, Label: ask.Label, Source: "page"})
	var refusal *stream.Refusal
	switch {
	case err == nil:
		w.monitor.labelled(model, ask.Seq, ask.Label)
		reply(rw, http.StatusOK, map[string]string{"status": "ok"})
	case errors.As(err, &refusal):
		refuseRequest(rw, http.StatusUnprocessableEntity, refusal.Err.Error())
	default:
		refuseRequest(rw, http.StatusServiceUnavailable, err.Error())
	}
}

// reply answers with a JSON object.
func reply(rw http.ResponseWriter, code int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		code, text = http.StatusInternalServerError, []byte(`{"status":"error"}`)
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(code)
	rw.Write(append(text, '\n'))
}

// refuseRequest answers with an error in words.
func refuseRequest(rw http.ResponseWriter, code int, why string) {
	reply(rw, code, map[string]string{"status": "error", "error": why})
}
