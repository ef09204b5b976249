package web

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"edge/internal/config"
	"edge/internal/web/bounds"
)

const (
	maxConnections     = 128      // open ones
	MaxFromAddress     = 96       // of them from one address
	maxRequests        = 32       // in progress, beside probes, scrapes and viewers
	maxRequestsFromOne = 16       // in progress from one address
	maxHeader          = 16 << 10 // bytes
	maxBody            = 4 << 10  // bytes
	maxScrapes         = 4        // of the metrics, concurrently
	headerTimeout      = 5 * time.Second
	readTimeout        = 10 * time.Second // header and body
	writeTimeout       = 10 * time.Second
	idleTimeout        = 15 * time.Second
	listenPause        = 10 * time.Second // between attempts
	closeWithin        = 500 * time.Millisecond
	memProfileRate     = 512 << 10 // bytes for each sample of the heap profile, Go's default
)

// Server serves the page, the API, the metrics and the health checks of a daemon.
type Server struct {
	Config   config.HTTP
	Timeouts Timeouts // NewServer sets the defaults; they may be changed before Run
	monitor  *Monitor
	log      *slog.Logger
	listener net.Listener // nil while the page cannot be served
	failure  error        // the reason for that
	hosts    hosts
	password *password // nil: none
	requests bounds.Requests
	scrapes  bounds.Requests
	viewers  bounds.Streams
	closing  context.Context
}

// Timeouts bound the time that a client may take.
type Timeouts struct {
	Header, Read, Write, Idle time.Duration // of a connection, as in http.Server
	ViewerReads               time.Duration // until a viewer has read an event
	ViewerStays               time.Duration // before a newer viewer may replace it
}

// NewServer listens. If that fails, Run tries again: a port in use by another program
// must not keep a model from learning.
func NewServer(cfg config.HTTP, m *Monitor, log *slog.Logger) *Server {
	w := &Server{
		Config: cfg, monitor: m, log: log, hosts: newHosts(cfg.Hosts), password: newPassword(cfg, log),
		requests: bounds.Requests{Max: maxRequests, Each: maxRequestsFromOne},
		scrapes:  bounds.Requests{Max: maxScrapes, Each: maxScrapes},
		viewers:  bounds.Streams{Max: MaxViewers},
		Timeouts: Timeouts{Header: headerTimeout, Read: readTimeout, Write: writeTimeout, Idle: idleTimeout, ViewerReads: viewerReads, ViewerStays: viewerStays},
	}
	w.listen()
	return w
}

// listen opens the listener, unless the configured password or certificate is
// missing.
func (w *Server) listen() {
	l, err := net.Listen("tcp", w.Config.Listen)
	if err == nil {
		if err = w.Config.Readable(); err != nil {
			l.Close()
		}
	}
	if w.failure = err; err != nil {
		return
	}
	for _, e := range w.Config.Exposures(w.monitor.deployment().Config.Control.Enabled) {
		w.log.Warn(e.Reason, "listen", l.Addr().String(), "advice", e.Advice)
	}
	w.listener = l
}

// URL returns the address of the page, "" while it is not served.
func (w *Server) URL() string {
	if w == nil || w.listener == nil {
		return ""
	}
	return w.Config.URL(w.listener.Addr().String())
}

// Run serves until ctx ends, and returns within closeWithin.
func (w *Server) Run(ctx context.Context) {
	retry := time.NewTicker(listenPause)
	defer retry.Stop()
	for logged := ""; w.listener == nil; {
		if why := w.failure.Error(); why != logged {
			w.log.Error("the page and the metrics cannot be served; will keep trying; http.listen is the address, an empty one switches them off", "listen", w.Config.Listen, "error", why)
			logged = why
		}
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
		ReadHeaderTimeout: w.Timeouts.Header, ReadTimeout: w.Timeouts.Read, WriteTimeout: w.Timeouts.Write, IdleTimeout: w.Timeouts.Idle,
		MaxHeaderBytes:               maxHeader,
		DisableGeneralOptionsHandler: true,                                                // it would answer before the check of the Host header
		ErrorLog:                     slog.NewLogLogger(w.log.Handler(), slog.LevelDebug), // errors of clients
		ConnContext:                  bounds.ConnContext,
	}
	w.log.Info("serving the page and the metrics", "url", w.URL())
	ended := make(chan error, 1)
	go func() {
		ended <- server.Serve(w.encrypted(bounds.NewListener(w.listener, maxConnections, MaxFromAddress, w.monitor.http)))
	}()
	select {
	case err := <-ended:
		w.log.Error("the page and the metrics are not served any more", "error", err)
		return
	case <-ctx.Done():
	}
	closing, done := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
	defer done()
	if server.Shutdown(closing) != nil {
		server.Close()
	}
	<-ended
}

// encrypted returns a listener with TLS, if a certificate is configured.
func (w *Server) encrypted(l net.Listener) net.Listener {
	if !w.Config.TLS.Enabled() {
		return l
	}
	certificate := newCertificate(w.Config.TLS, w.log)
	return tls.NewListener(l, &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"}, // HTTP/2 would allow many concurrent requests over one connection
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate.get() },
	})
}

// newCertificate loads the certificate, and loads it again when a file has changed.
func newCertificate(c config.Certificate, log *slog.Logger) *fileCache[*tls.Certificate] {
	return &fileCache[*tls.Certificate]{name: "http.tls", files: c.Files(), log: log, load: func() (*tls.Certificate, error) {
		pair, err := c.Load()
		return &pair, err
	}}
}

// Close closes the listener of a server whose Run was never called.
func (w *Server) Close() {
	if w != nil && w.listener != nil {
		w.listener.Close()
	}
}

// handler routes requests. Probes are always answered. All other requests need the
// password, if one is configured, and are bounded in number.
func (w *Server) handler() http.Handler {
	m := w.monitor
	rest := http.NewServeMux()
	rest.HandleFunc("GET /api/v1/models", func(rw http.ResponseWriter, r *http.Request) { reply(rw, http.StatusOK, m.describeNode()) })
	rest.HandleFunc("GET /api/v1/models/{model}", w.ofModel(func(rw http.ResponseWriter, served *Model) { reply(rw, http.StatusOK, m.describeModel(served)) }))
	rest.HandleFunc("GET /api/v1/models/{model}/fleet", w.ofModel(w.fleet))
	rest.Handle("POST /api/v1/models/{model}/label", http.NewCrossOriginProtection().Handler(http.HandlerFunc(w.label)))
	rest.HandleFunc("GET /{$}", servePage)
	for _, before := range []string{"/metrics", "/api/v1/events", "/healthz", "/readyz"} {
		rest.HandleFunc("GET "+before, http.NotFound) // routed before; of another method the answer is 405
	}
	if w.Config.Pprof {
		runtime.MemProfileRate = memProfileRate
		profiles(rest)
	}
	private := http.NewServeMux()
	private.HandleFunc("GET /metrics", w.limited(&w.scrapes, refusedScrape, w.metrics()))
	private.HandleFunc("GET /api/v1/events", w.viewed(w.follow))
	private.HandleFunc("/", w.limited(&w.requests, refusedBusy, rest.ServeHTTP))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", w.probe(func() health { return healthOf(m.Alive(AliveWithin)) }))
	mux.HandleFunc("GET /readyz", w.probe(func() health { return healthOf(m.ready()) }))
	mux.Handle("/", w.authorised(private))
	return w.guard(mux)
}

// ofModel serves requests about the model that their path names.
func (w *Server) ofModel(answer func(rw http.ResponseWriter, served *Model)) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		served := w.monitor.model(r.PathValue("model"))
		if served == nil {
			refuseRequest(rw, http.StatusNotFound, noModel)
			return
		}
		answer(rw, served)
	}
}

const noModel = "there is no such model" // of a path or a query

// metrics serves the metrics of the daemon, its Go runtime and its process.
func (w *Server) metrics() http.HandlerFunc {
	c := newCollector(w.monitor)
	return func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", expositionType)
		rw.Write(c.collect()) // an error means that the client has gone
	}
}

// reply answers with v as JSON.
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

// refuseRequest answers with an error message. It is not inlined: each call would make a map.
//
//go:noinline
func refuseRequest(rw http.ResponseWriter, code int, why string) {
	reply(rw, code, map[string]string{"status": "error", "error": why})
}

// Failure is the reason why the page cannot be served, nil if the server listens.
func (w *Server) Failure() error { return w.failure }
