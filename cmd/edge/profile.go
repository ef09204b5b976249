//go:build !minimal

package main

import (
	"net/http"
	"net/http/pprof"
)

// profiles says whether this build can serve Go's profiles.
const profiles = true

// serveProfiles serves them under /debug/pprof/.
func serveProfiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
}
