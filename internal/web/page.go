package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// The parts of the page that shows a running daemon. They are packed: that takes 34 kB less of
// a device's program.
//
//go:generate gzip -9nkf page.html page.css page.js
var (
	//go:embed page.html.gz
	packedBody []byte
	//go:embed page.css.gz
	packedStyle []byte
	//go:embed page.js.gz
	packedProgram []byte
)

// unpacked returns the text of a part.
func unpacked(part []byte) string {
	var text strings.Builder
	if z, err := gzip.NewReader(bytes.NewReader(part)); err == nil {
		io.Copy(&text, z) // a test reads it
	}
	return text.String()
}

// page returns the page as one file.
var page = sync.OnceValue(func() string {
	styled := strings.Replace(unpacked(packedBody), "<style></style>", "<style>\n"+unpacked(packedStyle)+"</style>", 1)
	return strings.Replace(styled, "<script></script>", "<script>\n"+unpacked(packedProgram)+"</script>", 1)
})

// pagePolicy lets a browser run the page's own program and style, connect to the
// server of the page, and nothing else.
var pagePolicy = sync.OnceValue(func() string {
	hash := func(tag string) string {
		_, rest, _ := strings.Cut(page(), "<"+tag+">")
		inner, _, _ := strings.Cut(rest, "</"+tag+">")
		sum := sha256.Sum256([]byte(inner))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return fmt.Sprintf("default-src 'none'; script-src %s; style-src %s; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		hash("script"), hash("style"))
})

// servePage answers with the page.
func servePage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", pagePolicy())
	fmt.Fprint(w, page())
}
