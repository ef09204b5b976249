package brokertest

import (
	"net"
	"testing"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

// Scripted is a broker for one client. It calls answer with each packet of the client, which
// sends as many packets as it likes. The end of the test ends it.
func Scripted(t testing.TB, answer func(asked packets.ControlPacket, send func(packets.ControlPacket))) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		for {
			asked, err := packets.ReadPacket(conn)
			if err != nil {
				return
			}
			answer(asked, func(p packets.ControlPacket) {
				_ = p.Write(conn) // the next read fails as well
			})
		}
	}()
	return "mqtt://" + l.Addr().String()
}

// Suback returns the answer to a subscription: a code for each filter, 0x80 if it is refused.
func Suback(asked *packets.SubscribePacket, codes ...byte) packets.ControlPacket {
	answer := packets.NewControlPacket(packets.Suback).(*packets.SubackPacket)
	answer.MessageID, answer.ReturnCodes = asked.MessageID, codes
	return answer
}
