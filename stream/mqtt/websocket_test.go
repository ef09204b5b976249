package mqtt

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

// A server that answers the request for a websocket without end is left after
// maxHandshake.
func TestWebsocketHandshakeIsBounded(t *testing.T) {
	for name, line := range map[string]string{"headers": "X-Header: value\r\n", "one header": strings.Repeat("x", 1000)} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			sent := make(chan int)
			go func() {
				n := 0
				defer func() { sent <- n }()
				conn, err := l.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n")
				for more := 0; err == nil && n < 256<<20; n += more {
					more, err = io.WriteString(conn, line)
				}
			}()
			_, err = dialWebsocket(t.Context(), &url.URL{Scheme: "ws", Host: l.Addr().String()}, nil, longWait)
			if !errors.Is(err, errHandshake) {
				t.Errorf("%v, want %v", err, errHandshake)
			}
			l.Close()
			if n := <-sent; n > 64<<20 { // the buffers of the sockets
				t.Errorf("%d bytes were sent", n)
			}
		})
	}
}

// A server without a websocket at the path says so.
func TestWebsocketAtAnotherPath(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	_, err := dialWebsocket(t.Context(), &url.URL{Scheme: "ws", Host: server.Listener.Addr().String(), Path: "/ws"}, nil, longWait)
	if err == nil || !strings.Contains(err.Error(), `the server answers "404 Not Found"`) || !strings.Contains(Advice(err), "is the path in mqtt.servers that of the broker's websocket") {
		t.Errorf("%v; %s", err, Advice(err))
	}
}

// A websocket's messages are a stream of bytes, however they are cut, also beyond the
// bound of a handshake.
func TestWebsocketIsAStream(t *testing.T) {
	const size = 3 * maxHandshake
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := (&websocket.Upgrader{Subprotocols: []string{"mqtt"}}).Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer ws.Close()
		for left, n := size, 0; left > 0; left, n = left-n, n+1 { // of 0, 1, 2, … bytes
			n = min(n, left)
			if err := ws.WriteMessage(websocket.BinaryMessage, make([]byte, n)); err != nil {
				t.Error(err)
				return
			}
		}
		_, echo, err := ws.ReadMessage()
		if err == nil {
			err = ws.WriteMessage(websocket.BinaryMessage, echo)
		}
		if err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	u, _ := url.Parse("ws" + strings.TrimPrefix(server.URL, "http"))
	conn, err := dialWebsocket(t.Context(), u, nil, longWait)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("echo")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, size+len("echo"))
	if _, err := io.ReadFull(conn, got); err != nil || string(got[size:]) != "echo" {
		t.Errorf("%q, %v", got[size:], err)
	}
}
