package mqtt

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"
)

// asked are packets of a client: PINGREQ, SUBSCRIBE 1 to three filters,
// UNSUBSCRIBE 2, PUBLISH 3 of QoS 1, PUBLISH 4 of QoS 2.
func asked() []packets.ControlPacket {
	sub := packets.NewControlPacket(packets.Subscribe).(*packets.SubscribePacket)
	sub.MessageID, sub.Topics, sub.Qoss = 1, []string{"a/#", "b", "c/+"}, []byte{1, 0, 2}
	unsub := packets.NewControlPacket(packets.Unsubscribe).(*packets.UnsubscribePacket)
	unsub.MessageID, unsub.Topics = 2, []string{"d", "e"}
	once, exactly := publishPacket("x", 5), publishPacket("y", 300)
	once.MessageID = 3
	exactly.MessageID, exactly.Qos = 4, 2
	return []packets.ControlPacket{packets.NewControlPacket(packets.Pingreq), sub, unsub, once, exactly}
}

// conversation is a connection on which a client has sent the packets of asked, and
// that reads from r.
func conversation(t testing.TB, r io.Reader, maxPayload int) *frameConn {
	f := newFrameConn(sink{Reader: r}, maxPayload, time.Second)
	for _, p := range asked() {
		if err := p.Write(f); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

const connack = "20020000"

// Permitted packets of a broker reach paho one by one; a forbidden one ends the
// connection with an error that names the packet and the reason.
// Long: a list of independent cases.
func TestProtocol(t *testing.T) {
	for name, c := range map[string]struct {
		wire string // hexadecimal, after a CONNACK unless it begins with one or with !
		want string // in the error; empty: all of it is allowed
	}{
		"CONNACK with a session":              {wire: "20020100"},
		"refusal":                             {wire: "20020005"},
		"CONNACK, code 6":                     {wire: "20020006", want: "CONNACK has the return code 6, want 0 to 5"},
		"CONNACK, flags":                      {wire: "20020200", want: "CONNACK has the acknowledge flags 00000010"},
		"CONNACK, too long":                   {wire: "2003000000", want: "CONNACK has a remaining length of 3, want 2 to 2"},
		"CONNACK, reserved flags":             {wire: "21020000", want: "CONNACK has the flags 0001, want 0000"},
		"CONNACK twice":                       {wire: "2002000020020000", want: "CONNACK came twice"},
		"a packet after a refusal":            {wire: "20020005" + "d000", want: "PINGRESP (first byte 0xd0) came before CONNACK"},
		"PUBLISH first":                       {wire: "!3003000161", want: "PUBLISH (first byte 0x30) came before CONNACK"},
		"HTTP":                                {wire: "!" + hex.EncodeToString([]byte("HTTP/1.1 400 Bad Request")), want: "answer begins as that of an HTTP server"},
		"TLS alert":                           {wire: "!15030100020246", want: "answer begins as an alert of TLS"},
		"type 0":                              {wire: "0000", want: "reserved type 0"},
		"type 15":                             {wire: "f000", want: "reserved type 15"},
		"CONNECT":                             {wire: "1000", want: "CONNECT (first byte 0x10) is not a packet of a broker"},
		"SUBSCRIBE":                           {wire: "8200", want: "SUBSCRIBE (first byte 0x82) is not a packet"},
		"UNSUBSCRIBE":                         {wire: "a200", want: "UNSUBSCRIBE (first byte 0xa2) is not a packet"},
		"PINGREQ":                             {wire: "c000", want: "PINGREQ (first byte 0xc0) is not a packet"},
		"DISCONNECT first":                    {wire: "!e000", want: "DISCONNECT (first byte 0xe0) is not a packet"},
		"endless length":                      {wire: "30ffffffff7f", want: "PUBLISH has a remaining length of more than four bytes"},
		"length in a longer form":             {wire: "d08000"},
		"PINGRESP":                            {wire: "d000"},
		"PINGRESP, twice":                     {wire: "d000d000", want: "PINGRESP came without a PINGREQ"},
		"PINGRESP, a body":                    {wire: "d00100", want: "PINGRESP has a remaining length of 1, want 0 to 0"},
		"PINGRESP, 256 MB":                    {wire: "d0ffffff7f", want: "PINGRESP has a remaining length of 268435455, want 0 to 0"},
		"SUBACK":                              {wire: "90050001010002"},
		"SUBACK, refused":                     {wire: "90050001800087"},
		"SUBACK, too many codes":              {wire: "9006000100000000", want: "SUBACK has a remaining length of 6, want 3 to 5"},
		"SUBACK, too few codes":               {wire: "900400010000", want: "SUBACK 1 has 2 return codes, the SUBSCRIBE has 3 topic filters"},
		"SUBACK, no codes":                    {wire: "90020001", want: "SUBACK has a remaining length of 2, want 3 to 5"},
		"SUBACK, code 3":                      {wire: "90050001010003", want: "SUBACK 1 has the return code 3"},
		"SUBACK, code 127":                    {wire: "9005000101007f", want: "SUBACK 1 has the return code 127"},
		"SUBACK, 256 MB":                      {wire: "90ffffff7f", want: "SUBACK has a remaining length of 268435455, want 3 to 5"},
		"SUBACK to nothing":                   {wire: "90050009000000", want: "SUBACK has the packet identifier 9, which answers no request"},
		"SUBACK to an UNSUBSCRIBE":            {wire: "9003000200", want: "SUBACK has the packet identifier 2"},
		"SUBACK to a PUBLISH":                 {wire: "9003000300", want: "SUBACK has the packet identifier 3"},
		"SUBACK twice":                        {wire: "90050001010002" + "9003000101", want: "SUBACK has the packet identifier 1, which answers no request"},
		"SUBACK, identifier 0":                {wire: "9003000000", want: "SUBACK has the packet identifier 0"},
		"SUBACK, flags":                       {wire: "92050001010002", want: "SUBACK has the flags 0010, want 0000"},
		"UNSUBACK":                            {wire: "b0020002"},
		"UNSUBACK to a SUBSCRIBE":             {wire: "b0020001", want: "UNSUBACK has the packet identifier 1, which answers no request"},
		"UNSUBACK twice":                      {wire: "b0020002b0020002", want: "UNSUBACK has the packet identifier 2, which answers no request"},
		"UNSUBACK, too long":                  {wire: "b003000200", want: "UNSUBACK has a remaining length of 3"},
		"PUBACK":                              {wire: "40020003"},
		"PUBACK twice":                        {wire: "4002000340020003"},
		"PUBACK to a SUBSCRIBE":               {wire: "40020001", want: "PUBACK has the packet identifier 1, which answers no request"},
		"PUBACK to a PUBLISH of QoS 2":        {wire: "40020004"},
		"PUBACK, identifier 0":                {wire: "40020000", want: "PUBACK has the packet identifier 0"},
		"PUBACK, flags":                       {wire: "42020003", want: "PUBACK has the flags 0010, want 0000"},
		"PUBACK, 256 MB":                      {wire: "40ffffff7f", want: "PUBACK has a remaining length of 268435455"},
		"PUBREC and PUBCOMP":                  {wire: "5002000450020004" + "70020004"},
		"PUBREC to a PUBLISH of QoS 1":        {wire: "50020003", want: "PUBREC has the packet identifier 3, which answers no request"},
		"PUBREC to nothing":                   {wire: "50020007", want: "PUBREC has the packet identifier 7, which answers no request"},
		"PUBCOMP to a SUBSCRIBE":              {wire: "70020001", want: "PUBCOMP has the packet identifier 1, which answers no request"},
		"PUBREL, also of an earlier life":     {wire: "620201c8"},
		"PUBREL, identifier 0":                {wire: "62020000", want: "PUBREL has the packet identifier 0"},
		"PUBREL, flags":                       {wire: "60020004", want: "PUBREL has the flags 0000, want 0010"},
		"PUBLISH":                             {wire: "3003000161" + "3306000161000762" + "3c05000161ff00"},
		"PUBLISH of QoS 0 with DUP":           {wire: "3803000161"},
		"PUBLISH of QoS 3":                    {wire: "36050001610007", want: "PUBLISH has QoS 3"},
		"PUBLISH of QoS 1, identifier 0":      {wire: "32050001610000", want: "PUBLISH of QoS 1 has the packet identifier 0"},
		"PUBLISH of QoS 2, identifier 0":      {wire: "34050001610000", want: "PUBLISH of QoS 2 has the packet identifier 0"},
		"PUBLISH without a topic's length":    {wire: "300100", want: "PUBLISH has a remaining length of 1"},
		"PUBLISH that ends in its topic":      {wire: "300300026100", want: "PUBLISH announces a topic of 2 bytes, 1 follow"},
		"PUBLISH that ends before its number": {wire: "3204000161ff", want: "PUBLISH ends before its packet identifier"},
		"PUBLISH without a topic":             {wire: "32040000000b"},
		"PUBLISH with a wildcard":             {wire: "3205000123000b"},
	} {
		t.Run(name, func(t *testing.T) {
			text, bare := strings.CutPrefix(c.wire, "!")
			if !bare && !strings.HasPrefix(text, "2") {
				text = connack + text
			}
			wire, err := hex.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			for _, taking := range []bool{false, true} {
				f := conversation(t, bytes.NewReader(wire), 100)
				if taking {
					f.onMessage = func(m *Message) { m.Free() }
				}
				for err = error(nil); err == nil; {
					_, err = packets.ReadPacket(f)
				}
				var broken *ProtocolError
				switch {
				case c.want == "" && err != io.EOF:
					t.Errorf("%v, want that it is allowed", err)
				case c.want != "" && (!errors.As(err, &broken) || !strings.Contains(err.Error(), c.want)):
					t.Errorf("%v, want %q", err, c.want)
				}
			}
		})
	}
}

// A DISCONNECT from a broker ends the connection and is not held against it.
func TestProtocolDisconnect(t *testing.T) {
	for _, wire := range []string{"\x20\x02\x00\x00\xe0\x00", "\x20\x02\x00\x00\xe0\x02\x8e\x00"} {
		f := newFrameConn(sink{Reader: strings.NewReader(wire)}, 100, time.Second)
		if _, err := io.ReadAll(f); err != errDisconnected {
			t.Errorf("%x: %v, want %v", wire, err, errDisconnected)
		}
	}
}

// An identifier belongs to the request that used it last.
func TestProtocolIdentifierUsedAgain(t *testing.T) {
	f := newFrameConn(sink{Reader: strings.NewReader("\x20\x02\x00\x00\x40\x02\x00\x01")}, 100, time.Second)
	once := publishPacket("x", 5)
	once.MessageID = 1
	sub := asked()[1]
	if err := errors.Join(once.Write(f), sub.Write(f)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(f); err == nil || !strings.Contains(err.Error(), "PUBACK has the packet identifier 1") {
		t.Errorf("%v, want that a PUBACK answers no SUBSCRIBE", err)
	}
}

// The protocol follows whole packets of paho only.
func TestProtocolPartialWrite(t *testing.T) {
	for _, wire := range []string{"\x82", "\x82\x05\x00\x01", "\x82\x01\x00", "\x32\x01a", "\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"} {
		f := newFrameConn(sink{}, 100, time.Second)
		if _, err := f.Write([]byte(wire)); !errors.Is(err, errPartial) {
			t.Errorf("Write %x = %v, want %v", wire, err, errPartial)
		}
	}
}

// A header that announces 256 MB takes no memory, whatever its type.
func TestProtocolMemory(t *testing.T) {
	for kind := range byte(16) {
		for _, taking := range []bool{false, true} {
			wire := []byte{0x20, 2, 0, 0, kind<<4 | packetRules[kind].flags, 0xff, 0xff, 0xff, 0x7f}
			f := conversation(t, io.MultiReader(bytes.NewReader(wire), bytes.NewReader(make([]byte, 1<<20))), 1000)
			if taking {
				f.onMessage = func(m *Message) {}
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for err := error(nil); err == nil; {
				_, err = packets.ReadPacket(f)
			}
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
				t.Errorf("%s: %d bytes", packetRules[kind].name, took)
			}
		}
	}
}

func addConversations(f *testing.F) {
	for _, wire := range []string{
		"90050001010002b002000240020003500200047002000462020007d000",
		"9006000100000000", "90050001800000", "900400010000", "40020001", "b0020001", "90ffffff7f", "70020004",
		"3003000161" + "3306000161000762" + "3c05000161ff00", "3405000161000962020009", "32040000000b", "3205000123000b",
	} {
		b, err := hex.DecodeString(wire)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
}

// Whatever a broker sends, paho reads the accepted packets without an error, and no
// packet is larger than necessary.
func FuzzProtocol(f *testing.F) {
	addConversations(f)
	f.Fuzz(func(t *testing.T, wire []byte) {
		const maxPayload = 100
		conn := conversation(t, io.MultiReader(strings.NewReader("\x20\x02\x00\x00"), bytes.NewReader(wire)), maxPayload)
		seen := &lastError{r: conn}
		for {
			packet, err := packets.ReadPacket(seen)
			if err != nil {
				if seen.err == nil || err != seen.err && err != io.ErrUnexpectedEOF {
					t.Fatalf("paho refuses what has passed: %v", err)
				}
				return
			}
			switch p := packet.(type) {
			case *packets.PublishPacket:
				if len(p.TopicName)+len(p.Payload) > conn.limit || p.Qos > 2 || p.Qos > 0 && p.MessageID == 0 {
					t.Fatalf("%v", p)
				}
			case *packets.SubackPacket:
				if p.MessageID != 1 || len(p.ReturnCodes) != 3 {
					t.Fatalf("%v with %d return codes", p, len(p.ReturnCodes))
				}
			}
		}
	})
}

// lastError keeps the error of a reader.
type lastError struct {
	r   io.Reader
	err error
}

func (l *lastError) Read(p []byte) (n int, err error) {
	n, l.err = l.r.Read(p)
	return n, l.err
}

// FuzzBroker lets a client of paho's meet a broker that sends anything once the
// client has subscribed, unsubscribed and published.
func FuzzBroker(f *testing.F) {
	addConversations(f)
	f.Fuzz(func(t *testing.T, wire []byte) {
		ours, theirs := net.Pipe()
		lost := make(chan error, 1)
		opts := paho.NewClientOptions().AddBroker("tcp://broker").SetClientID("fuzz").SetProtocolVersion(4).
			SetAutoReconnect(false).SetStore(noStore{}).SetKeepAlive(time.Hour).
			SetDefaultPublishHandler(func(_ paho.Client, m paho.Message) { m.Ack() }).
			SetConnectionLostHandler(func(_ paho.Client, err error) { lost <- err }).
			SetCustomOpenConnectionFn(func(*url.URL, paho.ClientOptions) (net.Conn, error) {
				return newFrameConn(ours, 1000, time.Minute), nil
			})
		go func() {
			defer theirs.Close()
			for range 5 { // CONNECT and what follows
				if p, err := packets.ReadPacket(theirs); err != nil {
					return
				} else if _, ok := p.(*packets.ConnectPacket); ok {
					theirs.Write([]byte("\x20\x02\x00\x00"))
				}
			}
			go io.Copy(io.Discard, theirs)
			theirs.Write(wire)
		}()
		c := paho.NewClient(opts)
		if token := c.Connect(); !token.WaitTimeout(longWait) || token.Error() != nil {
			t.Fatalf("connect: %v", token.Error())
		}
		c.SubscribeMultiple(map[string]byte{"a/#": 1, "b": 0, "c/+": 2}, nil) // identifier 1
		c.Unsubscribe("d", "e")
		c.Publish("x", 1, false, "payload")
		c.Publish("y", 2, false, "payload")
		select {
		case <-lost:
		case <-time.After(longWait):
			t.Fatal("the connection does not end")
		}
		c.Disconnect(0)
	})
}
