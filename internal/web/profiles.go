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
	mux.HandleFunc("GET /debug/pprof/cmdline", func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(strings.Join(os.Args, "\x00")))
	})
	mux.HandleFunc("GET /debug/pprof/profile", func(w http.ResponseWriter, r *http.Request) {
		record(w, r, 30, func() error { return pprof.StartCPUProfile(w) }, pprof.StopCPUProfile)
	})
	mux.HandleFunc("GET /debug/pprof/trace", func(w http.ResponseWriter, r *http.Request) {
		record(w, r, 1, func() error { return trace.Start(w) }, trace.Stop)
	})
}

// listProfiles lists the names of the profiles.
func listProfiles(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	for _, p := range pprof.Profiles() {
		fmt.Fprintf(w, "%d\t%s?debug=1\n", p.Count(), p.Name())
	}
	fmt.Fprint(w, "\tprofile?seconds=30\n\ttrace?seconds=1\n\tcmdline\n")
}

// serveProfile serves a profile of the present state: packed, or with debug=1 as text.
func serveProfile(w http.ResponseWriter, r *http.Request) {
	p := pprof.Lookup(r.PathValue("name"))
	if p == nil {
		refuseRequest(w, http.StatusNotFound, "there is no such profile")
		return
	}
	debug, _ := strconv.Atoi(r.FormValue("debug"))
	if gc, _ := strconv.Atoi(r.FormValue("gc")); gc > 0 && p.Name() == "heap" {
		runtime.GC()
	}
	setProfileType(w, debug > 0)
	p.WriteTo(w, debug)
}

// record serves what start begins and stop ends, after the seconds of the request.
func record(w http.ResponseWriter, r *http.Request, seconds float64, start func() error, stop func()) {
	if given, err := strconv.ParseFloat(cmp.Or(r.FormValue("seconds"), "0"), 64); err == nil && given > 0 {
		seconds = given
	}
	took := time.Duration(min(seconds, 3600) * float64(time.Second))
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(took + writeTimeout))
	setProfileType(w, false)
	if err := start(); err != nil {
		refuseRequest(w, http.StatusInternalServerError, err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), took)
	<-ctx.Done()
	cancel()
	stop()
}

// setProfileType sets the type of a profile: text, or packed.
func setProfileType(w http.ResponseWriter, text bool) {
	kind := "application/octet-stream"
	if text {
		kind = "text/plain; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("X-Content-Type-Options", "nosniff")
}
