// Package mqtt is the MQTT 3.1.1 client of a node.
//
// A Client keeps one connection to the broker (Run): it subscribes, puts received
// Messages into a Queue, and serves an Outbox of Publications. Each connection is a
// Conn; after a loss, the next one is a new Conn. Config, TLS, Secret and Ring
// configure it.
//
// # paho and frameConn
//
// Each Conn has a paho client, and between paho and the network a frameConn, which
// reads and writes the packets of messages itself:
//
//	packet                      handled by
//	CONNECT, CONNACK            paho: session, Last Will; frameConn enters the keep-alive
//	SUBSCRIBE, UNSUBSCRIBE      paho, and their answers
//	PINGREQ                     Conn.keepAlive, and to prove that the broker has read all acknowledgements
//	PINGRESP                    frameConn; any packet that arrives first shows as well that the broker is alive
//	DISCONNECT                  paho
//	PUBLISH from the broker     frameConn: Conn.receive puts a Message into the Queue
//	PUBACK, PUBREC, PUBCOMP     frameConn, as acknowledgements of received messages (Message.Ack)
//	PUBREL                      frameConn answers it with PUBCOMP
//	PUBLISH to the broker       frameConn, from the Outbox, with identifiers from 32768 on
//	PUBACK of those             frameConn: the receipt of the publication is done
//
// A protocol checks every packet of the broker before paho or the node uses it
// (packet.go); a violation ends the connection with a ProtocolError.
//
// # Delivery
//
// Received messages are acknowledged by the receiver, once they are durable. The
// client cannot request a message again on the same connection: if the queue is full,
// it leaves the message and its successors unacknowledged and reconnects, and the
// broker sends them again. acks counts the acknowledgements that the broker has
// provably read; the Cursor, a retained message, carries this knowledge over a crash.
// Publications that the broker has not acknowledged when a connection ends are
// published again over the next one.
//
// Reference: MQTT 3.1.1, OASIS Standard, 2014.
package mqtt
