package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"edge/internal/broker/brokertest"
	"edge/internal/exit"
	"edge/test/files"
)

// inMill is a model in a fleet, for fleetConfig.
const inMill = "  bearing: {streams: [pump], fleet: {concept: mill}}\n"

// fleetConfig returns a file of configuration with these models.
func fleetConfig(t *testing.T, url, models string) string {
	return files.Write(t, "edge.yaml", "node: pi1\nmqtt: {servers: [\""+url+"\"]}\nstreams: {pump: {topics: [pump], features: [a, b]}}\nmodels:\n"+models)
}

// The commands find the only model in a fleet, and name a missing one.
func TestFleetCommands(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	config := func(models string) string { return fleetConfig(t, b.URL(), models) }
	in, two, none := config(inMill), config(inMill+"  seal: {streams: [pump], fleet: {concept: seals}}\n"), config("  bearing: {streams: [pump]}\n")
	follower := config(strings.Replace(inMill, "concept: mill", "concept: mill, role: follower, basis: shared", 1))
	for _, c := range []struct {
		line, want string
		code       int
	}{
		{"ls --kept -c " + in, "the broker keeps no contribution of fleet mill", exit.OK},
		{"ls --kept --json -c " + in, "[]\n", exit.OK},
		{"ls seal --kept -c " + two, "no contribution of fleet seals", exit.OK},
		{"ls --kept -c " + two, "give one of bearing, seal", exit.Usage},
		{"ls pump --kept -c " + two, "give one of bearing, seal", exit.Usage},
		{"ls --kept -c " + none, "give one fleet.concept", exit.Config},
		{"ls --kept --wait 0s -c " + in, "want a time above 0", exit.Usage},
		{"forget pi/7 --yes -c " + in, "no name of a node", exit.Usage},
		{"forget pi7 --yes -c " + in, "the broker keeps no contribution of pi7 on edge/fleet/mill/pi7, nor of any", exit.Runtime},
		{"forget pi7 -c " + in, "the broker keeps no contribution of pi7", exit.Runtime},
		{"rebase newest -c " + in, "want first or pooled", exit.Usage},
		{"rebase first -c " + in, "set fleet.basis to shared", exit.Config},
		{"rebase first -c " + follower, "only follows: ask a node", exit.Config},
		{"export x.fleet -c " + follower, "give --member", exit.Usage},
		{"export x.fleet -c " + in, "the broker keeps no contribution of pi1", exit.Runtime},
		{"forget basis --yes -c " + in, "edge fleet rebase", exit.Usage},
		{"export x.fleet --member + -c " + in, "no name of a node", exit.Usage},
		{"export x.fleet --member= -c " + in, "no name of a node", exit.Usage},
		{"export x.fleet --member basis -c " + in, "edge fleet rebase", exit.Usage},
		{"import " + in + " -c " + in, "is no file of edge fleet export: it does not begin with EFC", exit.Runtime},
	} {
		code, out, errOut := edge(t, append([]string{"fleet"}, strings.Fields(c.line)...)...)
		if code != c.code || !strings.Contains(out+errOut, c.want) {
			t.Errorf("edge fleet %s exits with %d and prints %q, want %d and %q", c.line, code, out+errOut, c.code, c.want)
		}
	}
}

// A command whose time to wait is over says what has not come. The time ends when the broker has
// been asked, and not before: the node's state is known to have been read once the client acknowledges it.
func TestFleetCommandsInTime(t *testing.T) {
	shared := strings.Replace(inMill, "concept: mill", "concept: mill, basis: shared", 1)
	for line, want := range map[string]string{
		"ls --kept":     "the time to wait was over",
		"ls":            "is its daemon running, with this broker, and may this user read edge/pi1/state? edge top --broker URL finds the nodes",
		"rebase pooled": "node pi1 is not online",
	} {
		ctx, end := context.WithCancelCause(t.Context())
		url := brokertest.Scripted(t, func(p packets.ControlPacket, send func(packets.ControlPacket)) {
			switch p := p.(type) {
			case *packets.ConnectPacket:
				send(packets.NewControlPacket(packets.Connack))
			case *packets.SubscribePacket:
				switch p.Topics[0] {
				case "edge/pi1/state":
					send(brokertest.Suback(p, 1))
					state := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
					state.Qos, state.MessageID, state.Retain, state.TopicName, state.Payload = 1, 1, true, "edge/pi1/state", []byte("offline")
					send(state)
				case "edge/pi1/response/fleet/bearing", "edge/pi1/response/fleet_rebase/bearing", "edge/pi1/info":
					send(brokertest.Suback(p, 1))
				default:
					end(context.DeadlineExceeded)
				}
			case *packets.PubackPacket:
				end(context.DeadlineExceeded)
			}
		})
		var out, errOut bytes.Buffer
		code := execute(ctx, append(strings.Fields("fleet "+line+" --wait 1h -c"), fleetConfig(t, url, shared)), strings.NewReader(""), &out, &errOut)
		if code != exit.Broker || !strings.Contains(errOut.String(), want) {
			t.Errorf("edge fleet %s exits with %d and prints %q, want %d and %q", line, code, out.String()+errOut.String(), exit.Broker, want)
		}
		end(nil)
	}
}

// A command that a signal ends says so, and blames neither the broker nor the node.
func TestInterruptedCommands(t *testing.T) {
	signal := errors.New("a signal")
	for _, line := range []string{"request ping", "fleet ls", "fleet ls --kept", "doctor", "check --connect"} {
		ctx, end := context.WithCancelCause(t.Context())
		url := brokertest.Scripted(t, func(p packets.ControlPacket, send func(packets.ControlPacket)) {
			switch p := p.(type) {
			case *packets.ConnectPacket:
				if line == "doctor" { // which would have a second connection
					end(signal)
				}
				send(packets.NewControlPacket(packets.Connack))
			case *packets.SubscribePacket:
				send(brokertest.Suback(p, p.Qoss...))
				if strings.HasSuffix(p.Topics[0], "/state") || line == "fleet ls --kept" { // the last one
					end(signal)
				}
			case *packets.DisconnectPacket:
				end(signal)
			}
		})
		var out, errOut bytes.Buffer
		code := execute(ctx, append(strings.Fields(line+" -c"), fleetConfig(t, url, inMill)), strings.NewReader(""), &out, &errOut)
		if code != exit.Runtime || errOut.String() != "edge: a signal\n" || strings.Contains(out.String(), "fail") {
			t.Errorf("edge %s exits with %d and prints %q, %q", line, code, out.String(), errOut.String())
		}
		end(nil)
	}
}
