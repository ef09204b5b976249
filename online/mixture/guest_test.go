package mixture

import (
	"errors"
	"math"
	"testing"

	"edge/online/wire"
)

// The share of a guest's answer with forests is the posterior odds of two answers, by the
// evidence of the latest labels.
func TestGuestForestsShare(t *testing.T) {
	m := &Mixture{}
	m.StartGuest()
	if s := m.GuestForests(); s != 0.5 {
		t.Fatalf("the share begins at %g", s)
	}
	with, without := []float64{0.6, 0.4}, []float64{0.3, 0.7}
	odds, kept := 0., 1-1./latest
	for _, class := range []int{0, 0, 1, 5} { // nobody knows the last one
		m.guest.forests.follow(class, 1, with, without)
		if odds *= kept; class < 2 {
			odds += math.Log(with[class] / without[class])
		}
	}
	if want := 1 / (1 + math.Exp(-odds)); math.Abs(m.GuestForests()-want) > 1e-12 {
		t.Errorf("share %g, want %g", m.GuestForests(), want)
	}
	m.guest.follow(5, 1, with, without)
	if lead := m.GuestLead(); math.Abs(lead-Ahead*kept) > 1e-12 {
		t.Errorf("the lead of the guest is %g", lead)
	}
}

// The weights of a guest go on from an encoded state; one of before has no weight of the
// forests.
func TestGuestRoundTrip(t *testing.T) {
	m := &Mixture{}
	m.StartGuest()
	m.guest = guest{on: true, twoAnswers: twoAnswers{logw: [2]float64{-1, 0}, pend: [2]float64{-0.25, -2}}, forests: twoAnswers{logw: [2]float64{0, -0.5}, pend: [2]float64{-3, -0.125}}}
	var e wire.Encoder
	m.EncodeGuest(&e)
	for _, test := range []struct {
		bytes   int
		forests twoAnswers
	}{{64, m.guest.forests}, {32, twoAnswers{}}} {
		got, d := &Mixture{}, wire.NewDecoder(e.Buf[:test.bytes], "", errors.New("damaged"))
		got.StartGuest()
		want := m.guest
		want.forests = test.forests
		if got.DecodeGuest(d); d.Err() != nil || d.Len() != 0 || got.guest != want {
			t.Errorf("%d bytes: %v, %+v, want %+v", test.bytes, d.Err(), got.guest, want)
		}
	}
	got, d := &Mixture{}, wire.NewDecoder(e.Buf[:40], "", errors.New("damaged"))
	if got.DecodeGuest(d); d.Err() == nil {
		t.Error("a part of a weight is read")
	}
}
