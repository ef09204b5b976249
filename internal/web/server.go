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
	s := &Server{
		Config: cfg, monitor: m, log: log, hosts: newHosts(cfg.Hosts), password: newPassword(cfg, log),
		requests: bounds.Requests{Max: maxRequests, Each: maxRequestsFromOne},
		scrapes:  bounds.Requests{Max: maxScrapes, Each: maxScrapes},
		viewers:  bounds.Streams{Max: MaxViewers},
		Timeouts: Timeouts{Header: headerTimeout, Read: readTimeout, Write: writeTimeout, Idle: idleTimeout, ViewerReads: viewerReads, ViewerStays: viewerStays},
	}
	s.listen()
	return s
}

// listen opens the listener, unless the configured password or certificate is
// missing.
func (s *Server) listen() {
	l, err := net.Listen("tcp", s.Config.Listen)
	if err == nil {
		if err = s.Config.Readable(); err != nil {
			l.Close()
		}
	}
	if s.failure = err; err != nil {
		return
	}
	for _, e := range s.Config.Exposures(s.monitor.deployment().Config.Control.Enabled) {
		s.log.Warn(e.Reason, "listen", l.Addr().String(), "advice", e.Advice)
	}
	s.listener = l
}

// URL returns the address of the page, "" while it is not served.
func (s *Server) URL() string {
	if s == nil || s.listener == nil {
		return ""
	}
	return s.Config.URL(s.listener.Addr().String())
}

// Run serves until ctx ends, and returns within closeWithin.
func (s *Server) Run(ctx context.Context) {
	retry := time.NewTicker(listenPause)
	defer retry.Stop()
	for logged := ""; s.listener == nil; {
		if why := s.failure.Error(); why != logged {
			s.log.Error("the page and the metrics cannot be served; will keep trying; http.listen is the address, an empty one switches them off", "listen", s.Config.Listen, "error", why)
			logged = why
		}
		select {
		case <-retry.C:
			s.listen()
		case <-ctx.Done():
			return
		}
	}
	s.closing = ctx
	server := &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: s.Timeouts.Header, ReadTimeout: s.Timeouts.Read, WriteTimeout: s.Timeouts.Write, IdleTimeout: s.Timeouts.Idle,
		MaxHeaderBytes:               maxHeader,
		DisableGeneralOptionsHandler: true,                                                // it would answer before the check of the Host header
		ErrorLog:                     slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // errors of clients
		ConnContext:                  bounds.ConnContext,
	}
	s.log.Info("serving the page and the metrics", "url", s.URL())
	ended := make(chan error, 1)
	go func() {
		ended <- server.Serve(s.encrypted(bounds.NewListener(s.listener, maxConnections, MaxFromAddress, s.monitor.http)))
	}()
	select {
	case err := <-ended:
		s.log.Error("the page and the metrics are not served any more", "error", err)
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
func (s *Server) encrypted(l net.Listener) net.Listener {
	if !s.Config.TLS.Enabled() {
		return l
	}
	certificate := newCertificate(s.Config.TLS, s.log)
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
func (s *Server) Close() {
	if s != nil && s.listener != nil {
		s.listener.Close()
	}
}

// handler routes requests. Probes are always answered. All other requests need the
// password, if one is configured, and are bounded in number.
func (s *Server) handler() http.Handler {
	m := s.monitor
	rest := http.NewServeMux()
	rest.HandleFunc("GET /api/v1/models", func(w http.ResponseWriter, r *http.Request) { reply(w, http.StatusOK, m.describeNode()) })
	rest.HandleFunc("GET /api/v1/models/{model}", s.ofModel(func(w http.ResponseWriter, served *Model) { reply(w, http.StatusOK, m.describeModel(served)) }))
	rest.HandleFunc("GET /api/v1/models/{model}/fleet", s.ofModel(s.fleet))
	own := http.NewCrossOriginProtection()
	own.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuseRequest(w, http.StatusForbidden, "the page that sent this has another address than it was sent to: a proxy has to pass the header Host on, nginx by proxy_set_header Host $http_host")
	}))
	rest.Handle("POST /api/v1/models/{model}/label", own.Handler(http.HandlerFunc(s.label)))
	rest.HandleFunc("GET /{$}", servePage)
	for _, before := range []string{"/metrics", "/api/v1/events", "/healthz", "/readyz"} {
		rest.HandleFunc("GET "+before, http.NotFound) // routed before; of another method the answer is 405
	}
	if s.Config.Pprof {
		runtime.MemProfileRate = memProfileRate
		profiles(rest)
	}
	private := http.NewServeMux()
	private.HandleFunc("GET /metrics", s.limited(&s.scrapes, refusedScrape, s.metrics()))
	private.HandleFunc("GET /api/v1/events", s.viewed(s.follow))
	private.HandleFunc("/", s.limited(&s.requests, refusedBusy, rest.ServeHTTP))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.probe(func() health { return healthOf(m.Alive(AliveWithin)) }))
	mux.HandleFunc("GET /readyz", s.probe(func() health { return healthOf(m.ready()) }))
	mux.Handle("/", s.authorised(private))
	return s.guard(mux)
}

// ofModel serves requests about the model that their path names.
func (s *Server) ofModel(answer func(w http.ResponseWriter, served *Model)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		served := s.monitor.model(r.PathValue("model"))
		if served == nil {
			refuseRequest(w, http.StatusNotFound, noModel)
			return
		}
		answer(w, served)
	}
}

const noModel = "there is no such model" // of a path or a query

// metrics serves the metrics of the daemon, its Go runtime and its process.
func (s *Server) metrics() http.HandlerFunc {
	c := newCollector(s.monitor)
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", expositionType)
		w.Write(c.collect()) // an error means that the client has gone
	}
}

// reply answers with v as JSON.
func reply(w http.ResponseWriter, code int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		code, text = http.StatusInternalServerError, []byte(`{"status":"error"}`)
	}
	text = append(text, '\n')
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(code)
	w.Write(text)
}

// refuseRequest answers with an error message. It is not inlined: each call would make a map.
//
//go:noinline
func refuseRequest(w http.ResponseWriter, code int, why string) {
	reply(w, code, map[string]string{"status": "error", "error": why})
}

// Failure is the reason why the page cannot be served, nil if the server listens.
func (s *Server) Failure() error { return s.failure }
