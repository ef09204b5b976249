package web

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"

	"edge/internal/config"
	"edge/stream"
	"edge/stream/codec"
)

const (
	maxRequests        = 32       // that are handled at a time, besides probes, scrapes and viewers
	maxRequestsFromOne = 16       // of them from one address
	maxHeader          = 16 << 10 // bytes
	maxBody            = 4 << 10  // bytes
	maxScrapes         = 4        // of the metrics at a time
	headerTimeout      = 5 * time.Second
	readTimeout        = 10 * time.Second // header and body
	writeTimeout       = 10 * time.Second
	idleTimeout        = 15 * time.Second
	listenPause        = 10 * time.Second // between attempts
	labelTimeout       = 5 * time.Second  // for a label to become durable
	closeWithin        = 500 * time.Millisecond
)

// Server serves the page, the API, the metrics and the health checks of a daemon.
type Server struct {
	Config   config.HTTP
	monitor  *Monitor
	log      *slog.Logger
	listener net.Listener // nil while the page cannot be served
	hosts    hosts
	password *password // nil: none
	requests turns
	scrapes  turns
	viewers  viewers
	server   *http.Server
	closing  context.Context
}

// NewServer listens, and lets Run try again if that fails: a port that another
// program has taken must not keep a model from learning.
func NewServer(cfg config.HTTP, m *Monitor, log *slog.Logger) *Server {
	w := &Server{
		Config: cfg, monitor: m, log: log, hosts: newHosts(cfg.Hosts), password: newPassword(cfg, log),
		requests: turns{max: maxRequests, each: maxRequestsFromOne},
		scrapes:  turns{max: maxScrapes, each: maxScrapes},
		viewers:  viewers{max: MaxViewers, stays: viewerStays, timeout: viewerReads},
		server: &http.Server{
			ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
			MaxHeaderBytes:               maxHeader,
			DisableGeneralOptionsHandler: true,                                              // it would answer before the Host is checked
			ErrorLog:                     slog.NewLogLogger(log.Handler(), slog.LevelDebug), // what clients do wrong
			ConnContext:                  withPlace,
		},
	}
	w.listen()
	return w
}

// listen does not serve without the password or the certificate that is wanted.
func (w *Server) listen() {
	l, err := net.Listen("tcp", w.Config.Listen)
	if err == nil {
		if err = w.Config.Readable(); err != nil {
			l.Close()
		}
	}
	if err != nil {
		w.log.Error("the page and the metrics cannot be served; will keep trying; http.listen says where, nothing there switches it off", "listen", w.Config.Listen, "error", err)
		return
	}
	for _, e := range w.Config.Exposures(w.monitor.now().Config.Control.Enabled) {
		w.log.Warn(e.Reason, "listen", l.Addr().String(), "advice", e.Advice)
	}
	w.listener = l
}

// URL is where the page is; "" if it is nowhere.
func (w *Server) URL() string {
	if w == nil || w.listener == nil {
		return ""
	}
	scheme := "http"
	if w.Config.TLS.Enabled() {
		scheme = "https"
	}
	return scheme + "://" + w.listener.Addr().String() + "/"
}

// Run serves until ctx ends, and returns soon after.
func (w *Server) Run(ctx context.Context) {
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
	w.server.Handler = w.handler()
	w.log.Info("serving the page and the metrics", "url", w.URL())
	ended := make(chan error, 1)
	go func() {
		ended <- w.server.Serve(w.encrypted(newPlaces(w.listener, maxConnections, MaxFromAddress, w.monitor.http)))
	}()
	select {
	case err := <-ended:
		w.log.Error("the page and the metrics are not served any more", "error", err)
		return
	case <-ctx.Done():
	}
	patience, done := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
	defer done()
	if w.server.Shutdown(patience) != nil {
		w.server.Close()
	}
	<-ended
}

// encrypted returns a listener whose connections speak TLS, if that is wanted.
func (w *Server) encrypted(l net.Listener) net.Listener {
	if !w.Config.TLS.Enabled() {
		return l
	}
	certificate := newCertificate(w.Config.TLS, w.log)
	return tls.NewListener(l, &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"}, // HTTP/2 would bring many requests at a time over one connection
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate.get() },
	})
}

// Close gives the address up, if run was never called.
func (w *Server) Close() {
	if w != nil && w.listener != nil {
		w.listener.Close()
	}
}

// handler routes requests. Probes are always answered; all else needs the
// password, if there is one, and a turn.
func (w *Server) handler() http.Handler {
	m := w.monitor
	rest := http.NewServeMux()
	rest.HandleFunc("GET /api/v1/models", func(rw http.ResponseWriter, r *http.Request) { reply(rw, http.StatusOK, m.describeNode()) })
	rest.HandleFunc("GET /api/v1/models/{model}", func(rw http.ResponseWriter, r *http.Request) {
		served := m.model(r.PathValue("model"))
		if served == nil {
			refuseRequest(rw, http.StatusNotFound, "there is no such model")
			return
		}
		reply(rw, http.StatusOK, m.describeModel(served))
	})
	rest.Handle("POST /api/v1/models/{model}/label", http.NewCrossOriginProtection().Handler(http.HandlerFunc(w.label)))
	rest.HandleFunc("GET /{$}", servePage)
	if w.Config.Pprof {
		rest.HandleFunc("GET /debug/pprof/", pprof.Index)
		rest.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		rest.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		rest.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		rest.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	private := http.NewServeMux()
	private.HandleFunc("GET /metrics", w.inTurn(&w.scrapes, refusedScrape, w.metrics()))
	private.HandleFunc("GET /api/v1/events", w.viewed(w.follow))
	private.HandleFunc("/", w.inTurn(&w.requests, refusedBusy, rest.ServeHTTP))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", w.probe(func() health { return healthOf(m.Alive(AliveWithin)) }))
	mux.HandleFunc("GET /readyz", w.probe(func() health { return healthOf(m.ready()) }))
	mux.Handle("/", w.authorised(private))
	return w.guard(mux)
}

// metrics serves those of the daemon, its Go runtime and its process.
func (w *Server) metrics() http.HandlerFunc {
	c := newCollector(w.monitor)
	return func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", expositionType)
		c.collect().WriteTo(rw) // whoever asked has gone, if it fails
	}
}

// labelRequest is the body of a POST to …/label.
type labelRequest struct {
	ID     string `json:"id"`     // of the sample; "" for the newest one
	Device string `json:"device"` // of the sample
	Seq    uint64 `json:"seq"`    // of the sample's prediction
	Label  string `json:"label"`
}

// label teaches the label of a sample, if the configuration allows it.
func (w *Server) label(rw http.ResponseWriter, r *http.Request) {
	model := r.PathValue("model")
	switch media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); {
	case !w.monitor.now().Config.Control.Enabled:
		refuseRequest(rw, http.StatusForbidden, "labels are not taken here: control.enabled is false")
		return
	case media != "application/json":
		refuseRequest(rw, http.StatusUnsupportedMediaType, "want application/json")
		return
	case w.monitor.model(model) == nil:
		refuseRequest(rw, http.StatusNotFound, "there is no such model")
		return
	}
	if !w.monitor.now().Node.Stats().Models[model].Learning {
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
	err := w.monitor.now().Node.Label(ctx, stream.LateLabel{Model: model, Device: ask.Device, ID: ask.ID, Label: ask.Label, Source: "page"})
	var refusal *codec.Refusal
	switch {
	case err == nil:
		w.monitor.Labelled(model, ask.Seq, ask.Label)
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
	text = append(text, '\n')
	rw.Header().Set("Content-Type", "application/json")
	rw.Header().Set("Content-Length", strconv.Itoa(len(text)))
	rw.WriteHeader(code)
	rw.Write(text)
}

// refuseRequest answers with an error in words.
func refuseRequest(rw http.ResponseWriter, code int, why string) {
	reply(rw, code, map[string]string{"status": "error", "error": why})
}

// Timeouts bound how long a client may take. NewServer sets the defaults.
type Timeouts struct {
	Header, Read, Write, Idle time.Duration // of a connection, as http.Server has them
	ViewerReads               time.Duration // until an event that is sent to a viewer is read
	ViewerStays               time.Duration // during which no newer viewer takes its place
}

// Timeouts returns the timeouts.
func (w *Server) Timeouts() Timeouts {
	return Timeouts{
		Header: w.server.ReadHeaderTimeout, Read: w.server.ReadTimeout, Write: w.server.WriteTimeout, Idle: w.server.IdleTimeout,
		ViewerReads: w.viewers.timeout, ViewerStays: w.viewers.stays,
	}
}

// SetTimeouts changes the timeouts. The server must not run yet.
func (w *Server) SetTimeouts(t Timeouts) {
	w.server.ReadHeaderTimeout, w.server.ReadTimeout, w.server.WriteTimeout, w.server.IdleTimeout = t.Header, t.Read, t.Write, t.Idle
	w.viewers.timeout, w.viewers.stays = t.ViewerReads, t.ViewerStays
}

// Listening reports whether the server has its address.
func (w *Server) Listening() bool { return w.listener != nil }

// Viewers returns the number of viewers that follow the events.
func (w *Server) Viewers() int { return w.viewers.len() }

// ForgetAttempts forgets the wrong passwords of all addresses.
func (w *Server) ForgetAttempts() {
	if w.password != nil {
		w.password.mu.Lock()
		defer w.password.mu.Unlock()
		clear(w.password.until)
	}
}
