package main

import (
	"strings"
	"testing"

	"edge/internal/broker/brokertest"
	"edge/internal/exit"
	"edge/test/harness"
)

// The commands find the only model in a fleet, and name a missing one.
func TestFleetCommands(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	config := func(models string) string {
		return harness.WriteFile(t, "edge.yaml", "node: pi1\nmqtt: {servers: [\""+b.URL()+"\"]}\nstreams: {pump: {topics: [pump], features: [a, b]}}\nmodels:\n"+models)
	}
	const one = "  bearing: {streams: [pump], fleet: {concept: mill}}\n"
	in, two, none := config(one), config(one+"  seal: {streams: [pump], fleet: {concept: seals}}\n"), config("  bearing: {streams: [pump]}\n")
	shared := config(strings.Replace(one, "concept: mill", "concept: mill, basis: shared", 1))
	follower := config(strings.Replace(one, "concept: mill", "concept: mill, role: follower, basis: shared", 1))
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
		{"ls --kept --wait 200ms -c " + in, "the time to wait was over", exit.Broker},
		{"ls --wait 200ms -c " + in, "may this user read edge/pi1/state?", exit.Broker},
		{"forget pi/7 --yes -c " + in, "no name of a node", exit.Usage},
		{"forget pi7 --yes -c " + in, "the broker keeps nothing of pi7 on edge/fleet/mill/pi7", exit.Runtime},
		{"forget pi7 -c " + in, "--yes answers yes", exit.Runtime},
		{"rebase newest -c " + in, "want first or pooled", exit.Usage},
		{"rebase first -c " + in, "set fleet.basis to shared", exit.Config},
		{"rebase first -c " + follower, "only follows: ask a node", exit.Config},
		{"export x.fleet -c " + follower, "give --member", exit.Usage},
		{"rebase pooled --wait 200ms -c " + shared, "node pi1 is not online", exit.Broker},
		{"export x.fleet -c " + in, "keeps no contribution of pi1", exit.Runtime},
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
