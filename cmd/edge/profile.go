//go:build !minimal

package main

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"strings"
	"time"
)

// profiles says whether this build can serve Go's profiles.
const profiles = true

// serveProfiles serves them under /debug/pprof/ at the addresses of
// net/http/pprof, which would bring a parser of profiles along for the
// difference of two; go tool pprof -diff_base makes that.
func serveProfiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/{$}", listProfiles)
	mux.HandleFunc("GET /debug/pprof/{name}", serveProfile)
	mux.HandleFunc("GET /debug/pprof/profile", func(w http.ResponseWriter, r *http.Request) {
		serveRecording(w, r, 30*time.Second, func() error { return pprof.StartCPUProfile(w) }, pprof.StopCPUProfile)
	})
	mux.HandleFunc("GET /debug/pprof/trace", func(w http.ResponseWriter, r *http.Request) {
		serveRecording(w, r, time.Second, func() error { return trace.Start(w) }, trace.Stop)
	})
	mux.HandleFunc("GET /debug/pprof/cmdline", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprint(w, strings.Join(os.Args, "\x00"))
	})
}

// listProfiles lists what there is, with the number of entries.
func listProfiles(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprint(w, "profile?seconds=30\ntrace?seconds=1\ncmdline\n")
	for _, p := range pprof.Profiles() {
		fmt.Fprintf(w, "%s\t%d\n", p.Name(), p.Count())
	}
}

// serveProfile serves one as it is now: ?debug=1 or 2 as text, ?gc=1 after a
// collection of the heap.
func serveProfile(w http.ResponseWriter, r *http.Request) {
	p := pprof.Lookup(r.PathValue("name"))
	if p == nil {
		http.NotFound(w, r)
		return
	}
	if r.URL.Query().Has("seconds") {
		http.Error(w, "take two profiles, and compare them with go tool pprof -diff_base", http.StatusBadRequest)
		return
	}
	if gc, _ := strconv.Atoi(r.URL.Query().Get("gc")); p.Name() == "heap" && gc > 0 {
		runtime.GC()
	}
	debug, _ := strconv.Atoi(r.URL.Query().Get("debug"))
	kind := "application/octet-stream"
	if debug > 0 {
		kind = "text/plain; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	p.WriteTo(w, debug) // an error is one of the connection
}

// serveRecording serves what runs for ?seconds, or until the client leaves.
func serveRecording(w http.ResponseWriter, r *http.Request, length time.Duration, start func() error, stop func()) {
	if seconds, err := strconv.ParseFloat(r.URL.Query().Get("seconds"), 64); err == nil && seconds > 0 {
		length = time.Duration(min(seconds, time.Hour.Seconds()) * float64(time.Second))
	}
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(length + writeTimeout)) // else the server's own stays
	w.Header().Set("Content-Type", "application/octet-stream")
	if err := start(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer stop()
	select {
	case <-time.After(length):
	case <-r.Context().Done():
	}
}
