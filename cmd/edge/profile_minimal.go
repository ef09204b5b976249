//go:build minimal

package main

import "net/http"

// profiles says whether this build can serve Go's profiles.
const profiles = false

func serveProfiles(*http.ServeMux) {}
