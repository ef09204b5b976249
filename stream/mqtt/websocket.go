package mqtt

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// maxHandshake bounds the bytes that a server may send before the websocket is open:
// certificates, and the headers of an HTTP response, which the HTTP library reads
// without a bound.
const maxHandshake = 256 << 10

// dialWebsocket opens a websocket to a broker (MQTT 3.1.1, section 6).
func dialWebsocket(ctx context.Context, u *url.URL, tlsConfig *tls.Config, within time.Duration) (net.Conn, error) {
	var opening *openingConn
	d := websocket.Dialer{
		Proxy: http.ProxyFromEnvironment, HandshakeTimeout: within, TLSClientConfig: tlsConfig, Subprotocols: []string{"mqtt"},
		NetDialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			opening = &openingConn{Conn: nc}
			opening.left.Store(maxHandshake)
			return opening, nil
		},
	}
	ws, answer, err := d.DialContext(ctx, u.String(), nil)
	if err != nil {
		if errors.Is(err, websocket.ErrBadHandshake) && answer != nil {
			err = fmt.Errorf("%w: the server answers %.60q", err, answer.Status)
		}
		if opening != nil && opening.left.Load() <= 0 { // the HTTP library hides the cause
			err = errHandshake
		}
		return nil, err
	}
	opening.left.Store(math.MaxInt64)
	return &websocketConn{Conn: ws}, nil
}

// openingConn is a connection that reads a bounded number of bytes.
type openingConn struct {
	net.Conn
	left atomic.Int64 // bytes that may be read
}

var errHandshake = errors.New("mqtt: open a websocket: the server sends more than a handshake needs; is this the address of a broker's websocket?")

func (c *openingConn) Read(p []byte) (int, error) {
	left := c.left.Load()
	if left <= 0 {
		return 0, errHandshake
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), left)])
	if left < math.MaxInt64 {
		c.left.Add(int64(-n))
	}
	return n, err
}

// websocketConn reads and writes the messages of a websocket as a stream of bytes.
type websocketConn struct {
	*websocket.Conn
	message io.Reader // message that is being read; nil: between two
	writing sync.Mutex
}

// Read implements net.Conn.
func (c *websocketConn) Read(p []byte) (n int, err error) {
	for n == 0 && err == nil && len(p) > 0 {
		if c.message == nil {
			if _, c.message, err = c.NextReader(); err != nil {
				return 0, err
			}
		}
		if n, err = c.message.Read(p); err == io.EOF {
			c.message, err = nil, nil
		}
	}
	return n, err
}

// Write implements net.Conn.
func (c *websocketConn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.WriteMessage(websocket.BinaryMessage, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// SetWriteDeadline implements net.Conn. It counts for the next write.
func (c *websocketConn) SetWriteDeadline(t time.Time) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *websocketConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}
