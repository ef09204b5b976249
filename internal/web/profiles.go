package web

import (
	"cmp"
	"context"
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

// profiles serves Go's profiles under the paths of net/http/pprof, which would make the program 128 KiB
// larger: it also subtracts profiles from each other, and symbolises those of other programs.
func profiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/{$}", listProfiles)
	mux.HandleFunc("GET /debug/pprof/{name}", serveProfile)
	mux.HandleFunc("GET /debug/pprof/cmdline", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Write([]byte(strings.Join(os.Args, "\x00")))
	})
	mux.HandleFunc("GET /debug/pprof/profile", func(rw http.ResponseWriter, r *http.Request) {
		record(rw, r, 30, func() error { return pprof.StartCPUProfile(rw) }, pprof.StopCPUProfile)
	})
	mux.HandleFunc("GET /debug/pprof/trace", func(rw http.ResponseWriter, r *http.Request) {
		record(rw, r, 1, func() error { return trace.Start(rw) }, trace.Stop)
	})
}

// listProfiles tells the names of the profiles.
func listProfiles(rw http.ResponseWriter, _ *http.Request) {
	rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
	for _, p := range pprof.Profiles() {
		fmt.Fprintf(rw, "%d\t%s?debug=1\n", p.Count(), p.Name())
	}
	fmt.Fprint(rw, "\tprofile?seconds=30\n\ttrace?seconds=1\n\tcmdline\n")
}

// serveProfile serves a profile of the present state: packed, or with debug=1 as text.
func serveProfile(rw http.ResponseWriter, r *http.Request) {
	p := pprof.Lookup(r.PathValue("name"))
	if p == nil {
		refuseRequest(rw, http.StatusNotFound, "there is no such profile")
		return
	}
	debug, _ := strconv.Atoi(r.FormValue("debug"))
	if gc, _ := strconv.Atoi(r.FormValue("gc")); gc > 0 && p.Name() == "heap" {
		runtime.GC()
	}
	setProfileType(rw, debug > 0)
	p.WriteTo(rw, debug)
}

// record serves what start begins and stop ends, after the seconds of the request.
func record(rw http.ResponseWriter, r *http.Request, seconds float64, start func() error, stop func()) {
	if given, err := strconv.ParseFloat(cmp.Or(r.FormValue("seconds"), "0"), 64); err == nil && given > 0 {
		seconds = given
	}
	took := time.Duration(min(seconds, 3600) * float64(time.Second))
	http.NewResponseController(rw).SetWriteDeadline(time.Now().Add(took + writeTimeout))
	setProfileType(rw, false)
	if err := start(); err != nil {
		refuseRequest(rw, http.StatusInternalServerError, err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), took)
	<-ctx.Done()
	cancel()
	stop()
}

// setProfileType sets the type of a profile: text, or packed.
func setProfileType(rw http.ResponseWriter, text bool) {
	kind := "application/octet-stream"
	if text {
		kind = "text/plain; charset=utf-8"
	}
	rw.Header().Set("Content-Type", kind)
	rw.Header().Set("X-Content-Type-Options", "nosniff")
}
