package main

import (
	"strings"
	"testing"

	"edge/internal/broker/brokertest"
	"edge/internal/exit"
	"edge/online/fleet"
	"edge/test/files"
	"edge/test/fleettest"
)

// encoded returns the encoded contribution of a node with one feature.
func encoded(t *testing.T, node, feature string) []byte {
	t.Helper()
	return fleettest.Encode(t, fleettest.Contribution(t, fleet.Header{
		Member: node, Version: fleet.Version{Epoch: 1, Sequence: 2}, Features: fleet.Features([]string{feature}, ""), N: 100, Classes: []string{"ok", "worn"}, Counts: []uint64{100, 0},
	}, 1))
}

// millNode returns the file of a configuration of a node whose model has one feature.
func millNode(t *testing.T, b *brokertest.Broker, feature string) string {
	return files.Write(t, "edge.yaml", "node: pi1\nmqtt: {servers: [\""+b.URL()+"\"]}\nstreams: {pump: {topics: [pump], features: ["+feature+"]}}\nmodels: {bearing: {streams: [pump], fleet: {concept: mill}}}\n")
}

// A contribution goes from one broker to another through a pipe. What export says goes
// to standard error.
func TestFleetPipe(t *testing.T) {
	from, to, data := brokertest.New(t, brokertest.Embedded), brokertest.New(t, brokertest.Embedded), encoded(t, "pi3", "rms")
	from.Retain(t, "edge/fleet/mill/pi3", string(data))
	code, out, errOut := edge(t, "fleet", "export", "-", "--member", "pi3", "-c", millNode(t, from, "rms"))
	if code != exit.OK || out != string(data) || !strings.HasPrefix(errOut, "-: pi3, version 1.2 with 100 labels") {
		t.Fatalf("it exits with %d, writes %d bytes, want %d, and prints %q", code, len(out), len(data), errOut)
	}
	config := millNode(t, to, "rms")
	if code, said, errOut := edgeWith(t, out, "fleet", "import", "-", "-c", config); code != exit.OK || said != "the broker keeps version 1.2 of pi3 with 100 labels\n" {
		t.Errorf("it exits with %d and prints %q", code, said+errOut)
	}
	if code, _, errOut := edgeWith(t, "", "fleet", "import", "-", "-c", config); code != exit.Runtime || !strings.Contains(errOut, "standard input is empty") {
		t.Errorf("of nothing it exits with %d and prints %q", code, errOut)
	}
}

// A file goes to a model with the same features alone.
func TestFleetImportOfOtherFeatures(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	file := files.Write(t, "pi3.fleet", string(encoded(t, "pi3", "rms")))
	if code, out, errOut := edge(t, "fleet", "import", file, "-c", millNode(t, b, "peak")); code != exit.Runtime || !strings.Contains(errOut, "other features") {
		t.Errorf("it exits with %d and prints %q", code, out+errOut)
	}
	if code, out, errOut := edge(t, "fleet", "import", file, "-c", millNode(t, b, "rms")); code != exit.OK || out != "the broker keeps version 1.2 of pi3 with 100 labels\n" {
		t.Errorf("it exits with %d and prints %q", code, out+errOut)
	}
}

// The file of a node that is online here stays away: it would stop the node's publications.
func TestFleetImportOfRunningNode(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	b.Retain(t, "edge/pi3/state", "online")
	file := files.Write(t, "pi3.fleet", string(encoded(t, "pi3", "rms")))
	if code, out, errOut := edge(t, "fleet", "import", file, "-c", millNode(t, b, "rms")); code != exit.Usage || !strings.Contains(errOut, "names of their own") {
		t.Errorf("it exits with %d and prints %q", code, out+errOut)
	}
	if code, out, _ := edge(t, "fleet", "ls", "--kept", "-c", millNode(t, b, "rms")); code != exit.OK || !strings.Contains(out, "no contribution") {
		t.Errorf("the broker keeps %q", out)
	}
}

// A retained message on the topic of no member is named with the way to remove it.
func TestFleetListOfStrays(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	config := millNode(t, b, "rms")
	b.Retain(t, "edge/fleet/mill/Pi 3", "EFC?")
	b.Retain(t, "edge/fleet/mill/pi3", string(encoded(t, "pi3", "rms")))
	code, out, errOut := edge(t, "fleet", "ls", "--kept", "-c", config)
	if code != exit.OK || !strings.Contains(out, "\npi3 ") || !strings.Contains(errOut, `topics of no member, and members refuse them: ["edge/fleet/mill/Pi 3"]; mosquitto_pub -r -n -t TOPIC removes one`) {
		t.Errorf("it exits with %d and prints %q, %q", code, out, errOut)
	}
}

// forget warns of a node that is online.
func TestFleetForgetOfRunningNode(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	config := millNode(t, b, "rms")
	for _, state := range []string{"offline", "online"} {
		b.Retain(t, "edge/pi3/state", state)
		b.Retain(t, "edge/fleet/mill/pi3", string(encoded(t, "pi3", "rms")))
		code, out, errOut := edge(t, "fleet", "forget", "pi3", "--yes", "-c", config)
		warned := strings.Contains(errOut, "pi3 is online: if it is still in fleet mill, it publishes again")
		if code != exit.OK || !strings.Contains(out, "has removed pi3") || warned != (state == "online") {
			t.Errorf("%s: it exits with %d and prints %q, %q", state, code, out, errOut)
		}
	}
}

// forget looks before it asks: the question says what the broker keeps, and a name of which it keeps
// nothing is answered with those that it keeps.
func TestFleetForgetLooksFirst(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	config := millNode(t, b, "rms")
	b.Retain(t, "edge/fleet/mill/pi3", string(encoded(t, "pi3", "rms")))
	b.Retain(t, "edge/fleet/mill/pi4", "EFC?")
	for name, want := range map[string]string{
		"pi3": "Remove the contribution of pi3 to fleet mill (version 1.2 with 100 labels, ",
		"pi4": "Remove the contribution of pi4 to fleet mill (it cannot be read: ",
		"pi5": "edge: the broker keeps no contribution of pi5 on edge/fleet/mill/pi5, but of pi3, pi4;",
	} {
		code, _, errOut := edge(t, "fleet", "forget", name, "-c", config)
		if code != exit.Runtime || !strings.HasPrefix(errOut, want) || strings.HasSuffix(errOut, "--yes answers yes\n") != (name != "pi5") {
			t.Errorf("%s: it exits with %d and prints %q, want %q", name, code, errOut, want)
		}
	}
}
