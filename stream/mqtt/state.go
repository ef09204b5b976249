package mqtt

import "time"

// States of a node, as its state topic has them.
const (
	stateOnline  = "online"
	stateOffline = "offline"
)

const offlineWithin = time.Second // wait for the acknowledgement of the offline message

// RepeatAfter is the time of a connection after which the first retained messages are published once
// more. EMQX listens before it keeps messages, and a client that was away connects to it at once.
const RepeatAfter = time.Minute

// contradictEvery is the least time between two messages that contradict another client.
const contradictEvery = 10 * time.Second

// publishState publishes the state of the node; nil if the client has no state topic.
func (conn *Conn) publishState(state string) *receipt {
	if conn.client.StateTopic == "" {
		return nil
	}
	return conn.retain(conn.client.StateTopic, []byte(state))
}

// receiveState takes a message of the state topic. Another process with the name of this node
// publishes that it is offline when it ends, and the broker keeps that as the state of both.
// A message that the broker had kept before the subscription is no answer to this node's. Any other
// payload asks for the state, and is answered as well. It reports whether another process has ended.
func (conn *Conn) receiveState(msg *Message) (ended bool) {
	if msg.Retained || string(msg.Payload) == stateOnline {
		return false
	}
	wake(conn.denied)
	return string(msg.Payload) == stateOffline
}

// publishOffline publishes that the node is offline, unless another node follows,
// and ends the connection. If the broker does not acknowledge the message in time,
// the connection ends without DISCONNECT, so that the broker publishes the Last
// Will, which has the same content.
func (conn *Conn) publishOffline() {
	if conn.client.replaced.Load() {
		conn.close()
		return
	}
	if d := conn.publishState(stateOffline); d != nil {
		select {
		case <-d.done:
		case <-conn.lost:
		case <-time.After(offlineWithin):
			conn.net.Close()
		}
	}
	conn.close()
}
