package fleetctl

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"edge/internal/broker"
	"edge/internal/broker/brokertest"
	"edge/internal/exit"
	"edge/online/fleet"
	"edge/stream/membership"
	"edge/stream/mqtt"
	"edge/test/fleettest"
)

const features = 7

// contribution returns the contribution of the member pi3 with m inducing points, and its
// encoding.
func contribution(t *testing.T, sequence uint64, m int) (*fleet.Contribution, []byte) {
	t.Helper()
	c := fleettest.Contribution(t, fleet.Header{
		Member: "pi3", Version: fleet.Version{Epoch: 1, Sequence: sequence}, Features: features, N: 100, Classes: []string{"a", "b"}, Counts: []uint64{100, 0},
	}, m)
	return c, fleettest.Encode(t, c)
}

func fleetAt(b *brokertest.Broker) *Fleet {
	cfg := brokertest.Config(b.URL())
	return &Fleet{MQTT: cfg, Concept: "c", Limit: 4 << 10, quiet: 200 * time.Millisecond}
}

// described returns what a test prints of the result of Read, which is nil after an error.
func described(all *Retained) []Kept {
	if all == nil {
		return nil
	}
	return all.Describe()
}

// within returns a context for commands.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), brokertest.Patience)
	t.Cleanup(cancel)
	return ctx
}

// A contribution in parts goes from one broker to another by file. An older one does not
// replace it, a newer and smaller one does and leaves no part behind, and a forgotten one
// is gone.
func TestContributionByFile(t *testing.T) {
	from, to := fleetAt(brokertest.New(t, brokertest.Embedded)), fleetAt(brokertest.New(t, brokertest.Embedded))
	ctx := within(t)
	large, data := contribution(t, 2, 250)
	if err := from.publish(ctx, large, data); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pi3.fleet")
	if _, err := from.Export(ctx, "pi4", file, nil); err == nil || !strings.Contains(err.Error(), "on edge/fleet/c/pi4, but of pi3;") {
		t.Errorf("the export of a member that the broker does not keep: %v", err)
	}
	if _, err := from.Export(ctx, "pi3", file, nil); err != nil {
		t.Fatal(err)
	}
	if kept, _ := os.ReadFile(file); !bytes.Equal(kept, data) {
		t.Errorf("the file has %d bytes, not the %d of the contribution", len(kept), len(data))
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v; want one for its owner alone", info, err)
	}
	if _, err := from.Export(ctx, "pi3", file, nil); code(err) != exit.Usage {
		t.Errorf("an export over a file: %v", err)
	}
	if _, err := to.Import(ctx, "pi3", features, file, nil); code(err) != exit.Usage {
		t.Errorf("the import of the own contribution: %v", err)
	}
	if _, err := to.Import(ctx, "pi1", features, file, nil); err != nil {
		t.Fatal(err)
	}
	all, err := to.Read(ctx, "")
	if err != nil || len(all.Contributions) != 1 || all.Contributions[0].Err != nil || !bytes.Equal(all.Contributions[0].Data, data) || len(all.Contributions[0].Topics) < 3 {
		t.Fatalf("the other broker keeps %+v, %v", described(all), err)
	}
	older, oldData := contribution(t, 1, 250)
	if err := to.publish(ctx, older, oldData); err == nil || !strings.Contains(err.Error(), "the newer one stays") {
		t.Errorf("an older contribution: %v", err)
	}
	small, smallData := contribution(t, 3, 2)
	if err := to.publish(ctx, small, smallData); err != nil {
		t.Fatal(err)
	}
	if all, err = to.Read(ctx, "pi3"); err != nil || len(all.Contributions) != 1 || len(all.Contributions[0].Topics) != 1 || !bytes.Equal(all.Contributions[0].Data, smallData) {
		t.Errorf("after a newer and smaller one it keeps %+v, %v", described(all), err)
	}
	if err := to.Forget(ctx, &all.Contributions[0]); err != nil {
		t.Errorf("forgotten: %v", err)
	}
	if _, err := to.Find(ctx, "pi3"); err == nil || !strings.Contains(err.Error(), "no contribution of pi3 on edge/fleet/c/pi3, nor of any other") {
		t.Errorf("afterwards: %v", err)
	}
}

// unsuback returns the answer to an UNSUBSCRIBE packet.
func unsuback(asked *packets.UnsubscribePacket) packets.ControlPacket {
	answer := packets.NewControlPacket(packets.Unsuback).(*packets.UnsubackPacket)
	answer.MessageID = asked.MessageID
	return answer
}

// slowBroker waits before it takes the connection, and sends its retained message a moment
// after it has granted the last filter.
func slowBroker(t *testing.T, wait time.Duration, topic string, payload []byte) (url string) {
	return brokertest.Scripted(t, func(p packets.ControlPacket, send func(packets.ControlPacket)) {
		switch p := p.(type) {
		case *packets.ConnectPacket:
			time.Sleep(wait)
			send(packets.NewControlPacket(packets.Connack))
		case *packets.UnsubscribePacket:
			send(unsuback(p))
		case *packets.SubscribePacket:
			send(brokertest.Suback(p, p.Qoss...))
			if slices.ContainsFunc(p.Topics, func(f string) bool { return strings.HasSuffix(f, "/+") }) {
				time.Sleep(wait / 20)
				kept := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
				kept.Retain, kept.TopicName, kept.Payload = true, topic, payload
				send(kept)
			}
		}
	})
}

// The time that a slow broker takes to connect is no silence after which all messages have
// come. The silence becomes longer until a busy machine keeps it.
func TestReadOfSlowBroker(t *testing.T) {
	_, data := contribution(t, 1, 2)
	for quiet := 200 * time.Millisecond; ; quiet *= 3 {
		f := &Fleet{MQTT: mqtt.DefaultConfig(), Concept: "c", quiet: quiet}
		f.MQTT.Servers = []string{slowBroker(t, 2*quiet, f.topics().Contribution("pi3"), data)}
		all, err := f.Read(within(t), "pi3")
		if err == nil && len(all.Contributions) == 1 && bytes.Equal(all.Contributions[0].Data, data) {
			return
		}
		if err != nil || quiet > 10*time.Second {
			t.Fatalf("after a silence of %v it reads %+v, %v", quiet, described(all), err)
		}
	}
}

// A broker that does not answer the subscription to a state has the exit code of the broker, and the time that was over.
func TestOnlineOfSilentBroker(t *testing.T) {
	ctx, end := context.WithCancelCause(t.Context())
	f := &Fleet{MQTT: mqtt.DefaultConfig()}
	f.MQTT.Servers = []string{brokertest.Scripted(t, func(p packets.ControlPacket, send func(packets.ControlPacket)) {
		switch p.(type) {
		case *packets.ConnectPacket:
			send(packets.NewControlPacket(packets.Connack))
		case *packets.SubscribePacket:
			end(context.DeadlineExceeded)
		}
	})}
	if online, err := f.Online(ctx, "pi3"); online || code(err) != exit.Broker || !strings.Contains(err.Error(), "the time to wait was over") {
		t.Errorf("online %v, %v with code %d", online, err, code(err))
	}
}

// manyBroker sends more retained messages than its queue holds, and drops its answers meanwhile: only the first
// subscription is answered.
func manyBroker(t *testing.T, topic string, payload []byte) (url string) {
	subscriptions := 0
	return brokertest.Scripted(t, func(p packets.ControlPacket, send func(packets.ControlPacket)) {
		switch p := p.(type) {
		case *packets.ConnectPacket:
			send(packets.NewControlPacket(packets.Connack))
		case *packets.UnsubscribePacket:
			send(unsuback(p))
		case *packets.SubscribePacket:
			if subscriptions++; subscriptions > 1 {
				return
			}
			send(brokertest.Suback(p, p.Qoss...))
			kept := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
			kept.Retain, kept.TopicName, kept.Payload = true, topic, payload
			for range manyMessages + 1 {
				send(kept)
			}
		}
	})
}

// All filters are subscribed to at once, and the messages are counted. The silence becomes longer until a busy machine
// keeps it.
func TestReadOfManyMessages(t *testing.T) {
	_, data := contribution(t, 1, 2)
	for quiet := 200 * time.Millisecond; ; quiet *= 3 {
		f := &Fleet{MQTT: mqtt.DefaultConfig(), Concept: "c", quiet: quiet}
		f.MQTT.Servers = []string{manyBroker(t, f.topics().Contribution("pi3"), data)}
		all, err := f.Read(within(t), "")
		if err == nil && len(all.Contributions) == 1 && all.Many {
			return
		}
		if err != nil || quiet > 10*time.Second {
			t.Fatalf("it reads %+v, %v, want one contribution of many messages", described(all), err)
		}
	}
}

// Reading ends in a fleet whose members publish all the time.
func TestReadOfBusyFleet(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	f, ctx := fleetAt(b), within(t)
	c, data := contribution(t, 1, 2)
	if err := f.publish(ctx, c, data); err != nil {
		t.Fatal(err)
	}
	client, err := broker.Dial(ctx, f.MQTT, broker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	read, published := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			if err := client.Publish(ctx, f.topics().Contribution("pi4"), 1, true, []byte("x")); err != nil {
				published <- err
				return
			}
			select {
			case <-read:
				published <- nil
				return
			case <-time.After(f.quiet / 10):
			}
		}
	}()
	all, err := f.Read(ctx, "")
	close(read)
	if err != nil || len(all.Contributions) != 2 || all.Contributions[0].Member != "pi3" || all.Contributions[0].Err != nil {
		t.Errorf("it reads %+v, %v", described(all), err)
	}
	if err := <-published; err != nil {
		t.Error(err)
	}
}

// A file that is no contribution is refused with what it is.
func TestImportRefusesFiles(t *testing.T) {
	f, dir := &Fleet{}, t.TempDir()
	_, data := contribution(t, 1, 2)
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	sparse := write("large", nil)
	if err := os.Truncate(sparse, fleet.MaxBytes+1); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ path, want string }{
		{filepath.Join(dir, "none"), "no such file"},
		{dir, "is a directory"},
		{os.DevNull, "no regular file"},
		{sparse, "too large: a contribution has at most 16.0 MiB"},
		{write("empty", nil), "is empty"},
		{write("text", []byte("a,b\n")), "does not begin with EFC"},
		{write("short", data[:len(data)/2]), "damaged or cut off"},
		{write("later", append([]byte("EFC9"), data[4:]...)), "a later version of edge"},
	} {
		if _, err := f.Import(t.Context(), "pi1", features, tc.path, nil); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.path, err, tc.want)
		}
	}
}

// A file that is no contribution, or of other features, is not published.
func TestImportChecks(t *testing.T) {
	f, ctx := fleetAt(brokertest.New(t, brokertest.Embedded)), within(t)
	broken := filepath.Join(t.TempDir(), "broken")
	c, data := contribution(t, 1, 2)
	data[len(data)/2] ^= 1
	if err := os.WriteFile(broken, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Import(ctx, "pi1", features, broken, nil); !errors.Is(err, fleet.ErrContribution) {
		t.Errorf("a damaged file: %v", err)
	}
	c.Features++
	data, err := c.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(broken, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Import(ctx, "pi1", features, broken, nil); err == nil || !strings.Contains(err.Error(), "other features") {
		t.Errorf("other features: %v", err)
	}
	if all, err := f.Read(ctx, ""); err != nil || len(all.Contributions) != 0 {
		t.Errorf("the broker keeps %+v, %v", described(all), err)
	}
}

// Mosquitto, with the list of rights of docs/guide/fleet.md, acknowledges what it forbids: the commands say that nothing
// happened, and which right is missing.
func TestMissingRight(t *testing.T) {
	rights := filepath.Join(t.TempDir(), "acl")
	if err := os.WriteFile(rights, []byte("pattern read edge/fleet/#\npattern write edge/fleet/+/%u\npattern write edge/fleet/+/%u/#\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	b := brokertest.New(t, func(t *testing.T, addr string) func() {
		return brokertest.MosquittoWith(t, addr, "acl_file "+rights+"\n")
	})
	other, named, ctx := fleetAt(b), fleetAt(b), within(t)
	other.MQTT.Username, named.MQTT.Username = "pi1", "pi3"
	const need = "the right to write edge/fleet/c/pi3 and edge/fleet/c/pi3/#"
	c, data := contribution(t, 1, 2)
	if err := other.publish(ctx, c, data); code(err) != exit.Broker || !strings.Contains(err.Error(), need) {
		t.Errorf("published without the right: %v", err)
	}
	if err := named.publish(ctx, c, data); err != nil {
		t.Fatal(err)
	}
	found, err := other.Find(ctx, "pi3")
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Forget(ctx, found); code(err) != exit.Broker || !strings.Contains(err.Error(), need) {
		t.Errorf("forgotten without the right: %v", err)
	}
	if err := named.Forget(ctx, found); err != nil {
		t.Error(err)
	}
}

// code returns the exit code of an error.
func code(err error) int {
	if e := (*exit.Error)(nil); errors.As(err, &e) {
		return e.Code
	}
	return exit.OK
}

// The list has the result of the latest merge for each member.
func TestPrint(t *testing.T) {
	z, age := -5.25, 90.
	v := membership.View{
		Concept: "c", Node: "pi1", State: membership.Joined, Role: membership.RoleMember, Own: membership.Own{Epoch: 3, Sequence: 12, N: 400, Bytes: 56000, Kept: true, Age: &age},
		Merges: 5, MergeAge: &age, Weight: 0.93, Refused: map[fleet.Reason]uint64{fleet.Distrusted: 4},
		Members: []membership.MemberView{
			{Name: "pi2", Epoch: 3, Sequence: 7, N: 380, Classes: []string{"a", "b"}, Age: 60, Bytes: 56000, Taken: true, Share: 1},
			{Name: "pi4", Epoch: 1, Sequence: 9, N: 300, Classes: []string{"a"}, Age: 3600, Bytes: 56000, Trust: &z, Refused: fleet.Distrusted},
			{Name: "pi5", Epoch: 1, Sequence: 1, N: 20, Age: 3, Bytes: 56000},
			{Name: "pi6", Epoch: 1, Sequence: 1, N: 20, Age: 3600, Bytes: 56000, Stale: true},
			{Name: "pi7", Epoch: 1, Sequence: 1, N: 20, Age: 3600, Bytes: 56000, Stale: true, Taken: true}, // until the next merge
		},
	}
	var out bytes.Buffer
	if err := Print(&out, "bearing", "c", &v); err != nil {
		t.Fatal(err)
	}
	want := `model bearing in fleet c: pi1, member
  published version 3.12 with 400 labels, 54.7 KiB in 1 message, 1m 30s ago; the broker keeps it
  merges: 5, the latest 1m 30s ago; weight of the fleet in the answers 93 %
  MEMBER  VERSION  LABELS  CLASSES  SIZE      AGE    Z     SHARE  IN THE LATEST MERGE
  pi2     3.7      380     2        54.7 KiB  1m 0s  –     100 %  yes
  pi4     1.9      300     1        54.7 KiB  1h 0m  -5.2  0 %    no: trust
  pi5     1.1      20      0        54.7 KiB  3s     –     0 %    not yet
  pi6     1.1      20      0        54.7 KiB  1h 0m  –     0 %    no: silent for longer than stale_after
  pi7     1.1      20      0        54.7 KiB  1h 0m  –     0 %    yes
  refused since the start: trust 4
`
	if out.String() != want {
		t.Errorf("it prints\n%s, want\n%s", &out, want)
	}
	out.Reset()
	damaged := membership.View{Node: "pi1", State: membership.Alone, Refused: map[fleet.Reason]uint64{membership.BadName: 2}, Spellings: [][]string{{"OK", "Ok", "ok"}}}
	for _, part := range []string{"no other member is known\n", "  OK and Ok and ok are spelt almost alike", "  refused since the start: name 2\n  edge fleet ls --kept says"} {
		if err := Print(&out, "bearing", "c", &damaged); err != nil || !strings.Contains(out.String(), part) {
			t.Errorf("%v: it prints\n%s, want %q", err, &out, part)
		}
	}
	out.Reset()
	v.State = membership.Gathering // also once merges have left out all members
	if err := Print(&out, "bearing", "c", &v); err != nil || !strings.HasPrefix(out.String(), "model bearing in fleet c: pi1, gathering: no other member is in the answers\n") {
		t.Errorf("without a member that is taken it prints\n%s, %v", &out, err)
	}
	out.Reset()
	v.Kept, v.Cleared, v.Parts = false, true, 2
	if err := Print(&out, "bearing", "c", &v); err != nil || !strings.Contains(out.String(), "54.7 KiB in 3 messages, 1m 30s ago; it was removed from the broker") {
		t.Errorf("of a removed one it prints\n%s, %v", &out, err)
	}
	out.Reset()
	v.Cleared, v.Lost = false, true
	if err := Print(&out, "bearing", "c", &v); err != nil || !strings.Contains(out.String(), "1m 30s ago; it did not come back: see") {
		t.Errorf("of a lost one it prints\n%s, %v", &out, err)
	}
	for averaged, want := range map[int]string{
		1: "common basis: number 2, of pi1; the latest merge averaged no parameters, which takes members with 50 labels that have published on this basis\n",
		3: "the latest merge averaged the parameters of 3 members\n",
	} {
		out.Reset()
		v.Sequence, v.Basis = 0, &membership.BasisView{Number: 2, Author: "pi1", Averaged: averaged}
		if err := Print(&out, "bearing", "d", &v); err != nil || !strings.Contains(out.String(), want) ||
			!strings.Contains(out.String(), "which has fleet d: reload it") || !strings.Contains(out.String(), "published nothing since its start") {
			t.Errorf("it prints\n%s, %v; want %q", &out, err, want)
		}
	}
	v.WarmedUp, out = true, bytes.Buffer{} // right after a start
	if err := Print(&out, "bearing", "c", &v); err != nil || !strings.Contains(out.String(), "follows once the broker has sent what it keeps") {
		t.Errorf("of a model whose warm-up is over it prints\n%s, %v", &out, err)
	}
	out.Reset()
	v.Basis, v.Unfit = nil, "basis 2 of pi2 is not adopted: it has other features"
	v.Members = []membership.MemberView{{Name: "pi2", Basis: "common", Taken: true}, {Name: "pi4", Basis: "own", Unfit: fleet.OtherInducing, Taken: true, Unread: membership.Malformed}}
	want = `  basis 2 of pi2 is not adopted: it has other features
  MEMBER  VERSION  LABELS  CLASSES  SIZE  AGE  Z  SHARE  BASIS          IN THE LATEST MERGE
  pi2     0.0      0       0        0 B   0s   –  0 %    common         yes
  pi4     0.0      0       0        0 B   0s   –  0 %    own: inducing  yes; its newest message is refused: format
`
	if err := Print(&out, "bearing", "c", &v); err != nil || !strings.Contains(out.String(), want) {
		t.Errorf("of a basis that is not adopted it prints\n%s, %v; want\n%s", &out, err, want)
	}
}

// The common basis is listed with its author and its number.
func TestPrintBasis(t *testing.T) {
	all := Retained{Contributions: []Contribution{
		{Member: membership.BasisName, Data: make([]byte, 2048), Topics: []string{"x"}, Contribution: &fleet.Contribution{Header: fleet.Header{Member: "pi1", Version: fleet.Version{Epoch: 2}, N: 50, Classes: []string{"a", "b"}}}},
	}}
	list := all.Describe()
	if list[0].Name != "basis" || list[0].Author != "pi1" || list[0].Epoch != 2 {
		t.Errorf("described as %+v", list[0])
	}
	var out bytes.Buffer
	if err := PrintKept(&out, "c", nil); err != nil || out.String() != "the broker keeps no contribution of fleet c, or this user may not read it\n" {
		t.Errorf("it prints %q, %v", &out, err)
	}
	out.Reset()
	const want = "MEMBER               VERSION  LABELS  SIZE     MESSAGES  CLASSES\ncommon basis of pi1  2.0      50      2.0 KiB  1         a, b\n"
	if err := PrintKept(&out, "c", list); err != nil || out.String() != want {
		t.Errorf("it prints\n%s, want\n%s", &out, want)
	}
}

// The list has the classes that only others, or this node alone, have. A class of another program has no line of its own.
func TestPrintForeignClasses(t *testing.T) {
	v := membership.View{Node: "pi1", State: membership.Joined, Foreign: []string{"a\n  pi9\t1.1", "b"}, Alone: []string{"k"}}
	const want = "  only other members have labels of a\\u000a  pi9\\u00091.1, b\n  only this node has labels of k\n"
	var out bytes.Buffer
	if err := Print(&out, "bearing", "c", &v); err != nil || !strings.Contains(out.String(), want) {
		t.Errorf("it prints\n%s, %v; want\n%s", &out, err, want)
	}
}
