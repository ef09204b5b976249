package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"edge/internal/broker"
)

// fakeSender records the messages.
type fakeSender struct {
	sent []string
	err  error
}

func (f *fakeSender) label(_ context.Context, model string, s sampleView, class string) error {
	f.sent = append(f.sent, fmt.Sprintf("%s: %v is %s", model, s.ID, class))
	return f.err
}

func (f *fakeSender) learn(_ context.Context, model string, on bool) error {
	f.sent = append(f.sent, fmt.Sprintf("%s: learning %v", model, on))
	return f.err
}

// pressed returns the message of a key.
func pressed(name string) tea.KeyPressMsg {
	codes := map[string]rune{"tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight, "enter": tea.KeyEnter, "esc": tea.KeyEscape}
	if code, ok := codes[name]; ok {
		return tea.KeyPressMsg{Code: code}
	}
	return tea.KeyPressMsg{Code: rune(name[0]), Text: name}
}

func TestProgram(t *testing.T) {
	for name, tc := range map[string]struct {
		keys    string
		receive func(*nodeState) // before the keys
		err     error
		sent    string
		want    string // in the display after the keys
		quit    bool
	}{
		"shows the first model":            {keys: "", want: "[bearing]"},
		"next model":                       {keys: "tab", want: "[pump]"},
		"and around":                       {keys: "tab tab", want: "[bearing]"},
		"and back":                         {keys: "left", want: "[pump]"},
		"quit":                             {keys: "q", quit: true},
		"pause":                            {keys: "p", want: "paused"},
		"choosing pauses":                  {keys: "down", want: "paused"},
		"label the newest, which has none": {keys: "l 2", sent: "bearing: <nil> is worn", want: "sent: #10 is worn"},
		"label by number":                  {keys: "down down l 1", sent: "bearing: 12345678901234567890 is ok", want: "sent: 12345678901234567890 is ok"},
		"the prediction is offered":        {keys: "down down l", want: "[2 worn]"},
		"label by choice":                  {keys: "down down down l right enter", sent: "bearing: p7-8 is worn"},
		"question left":                    {keys: "down down l esc 1", want: "q quit"},
		"no such number":                   {keys: "down down l 7", want: "esc leave"},
		"what is asked for":                {keys: "a 1", sent: "bearing: p7-8 is ok", want: "sent: p7-8 is ok"},
		"nothing is asked for":             {keys: "tab a", want: "asks for no label"},
		"broker is away":                   {keys: "down down l 1", err: errors.New("no answer"), sent: "bearing: 12345678901234567890 is ok", want: "not sent: no answer"},
		"learning off":                     {keys: "s", sent: "bearing: learning false", want: "asked: learning of bearing off"},
		"learning on":                      {keys: "tab s", sent: "pump: learning true"},
		"no classes yet":                   {keys: "tab l", want: "the model has no sample yet"},
		"without control": {keys: "l", want: "control is not enabled", receive: func(b *nodeState) {
			b.receive("edge/hall/info", []byte(`{"models":[{"name":"bearing","classes":["ok"]}]}`), true)
		}},
		"a model that does not learn": {keys: "l", want: "the model does not learn", receive: func(b *nodeState) {
			b.receive("edge/hall/bearing/metrics", []byte(`{"n":0,"classes":["ok","worn"],"learning":false}`), true)
		}},
		"an older one without an id": {keys: "down down l", want: "only the newest can be labelled", receive: func(b *nodeState) {
			for seq := range 2 {
				b.receive("edge/hall/bearing/prediction", fmt.Appendf(nil, `{"seq":%d,"class":"ok","confidence":1}`, 11+seq), false)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := receivedState(t)
			if tc.receive != nil {
				tc.receive(b)
			}
			send := &fakeSender{err: tc.err}
			s := &program{ctx: t.Context(), snapshot: func() *view { return b.snapshot(true) }, send: send}
			s.Init()
			s.Update(tea.WindowSizeMsg{Width: 100, Height: 24})
			quit := false
			for _, key := range strings.Fields(tc.keys) {
				_, cmd := s.Update(pressed(key))
				if cmd == nil {
					continue
				}
				msg := cmd()
				_, quit = msg.(tea.QuitMsg)
				s.Update(msg)
			}
			if got := strings.Join(send.sent, "; "); got != tc.sent {
				t.Errorf("sent %q, want %q", got, tc.sent)
			}
			if quit != tc.quit {
				t.Errorf("quit is %v", quit)
			}
			if text := s.View().Content; !strings.Contains(text, tc.want) || strings.Count(text, "\n") != 23 {
				t.Errorf("the display lacks %q, or has not 24 lines:\n%s", tc.want, text)
			}
		})
	}
}

// A label for a sample without an id must not reach a newer sample that arrives
// before the answer.
// seenWriter calls a function once a text was written to it.
type seenWriter struct {
	written strings.Builder
	text    string
	seen    func()
}

func (w *seenWriter) Write(p []byte) (int, error) {
	w.written.Write(p)
	if strings.Contains(w.written.String(), w.text) {
		w.seen()
	}
	return len(p), nil
}

// A terminal that does not know its size, as a serial line or `ssh -tt` from a program, is drawn on as well.
func TestProgramWithoutSize(t *testing.T) {
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	ctx, cancel := context.WithCancelCause(ctx)
	drawn := errors.New("it draws the keys")
	out := &seenWriter{text: "q quit", seen: func() { cancel(drawn) }}
	in, _ := io.Pipe()
	defer in.Close()
	w := &client{state: newNodeState("edge", "n1"), publisher: new(broker.Publisher)}
	if err := runProgram(ctx, w, "", in, out); err != nil || context.Cause(ctx) != drawn {
		t.Errorf("%v, %v, want the keys at the bottom", err, context.Cause(ctx))
	}
}

func TestProgramLabelsNoOtherSample(t *testing.T) {
	b := receivedState(t)
	send := &fakeSender{}
	s := &program{ctx: t.Context(), snapshot: func() *view { return b.snapshot(true) }, send: send}
	s.Init()
	s.Update(pressed("l"))
	b.receive("edge/hall/bearing/prediction", []byte(`{"seq":11,"class":"ok","confidence":1}`), false)
	if _, cmd := s.Update(pressed("1")); cmd != nil || len(send.sent) > 0 || !strings.Contains(s.View().Content, "nothing was sent") {
		t.Errorf("sent %q", send.sent)
	}
}

// A class or a device whose name has a character that is not shown is sent as it is, and
// drawn with its escape.
func TestProgramSendsNamesAsTheyAre(t *testing.T) {
	b := receivedState(t)
	b.receive("edge/hall/bearing/metrics", []byte(`{"n":2,"classes":["\u2764\ufe0f"],"confusion":[[2]],"learning":true}`), true)
	b.receive("edge/hall/bearing/prediction", []byte(`{"id":"new","seq":11,"device":"hall\u00a0one","class":"\u2764\ufe0f","confidence":1}`), false)
	send := &fakeSender{}
	s := &program{ctx: t.Context(), snapshot: func() *view { return b.snapshot(true) }, send: send}
	s.Init()
	s.Update(pressed("l"))
	if text := s.View().Content; !strings.Contains(text, `[1 ❤\ufe0f]`) || strings.ContainsAny(text, "\ufe0f\u00a0") {
		t.Errorf("the display is\n%q", text)
	}
	_, cmd := s.Update(pressed("1"))
	if cmd == nil {
		t.Fatal("nothing is sent")
	}
	s.Update(cmd())
	if got, want := strings.Join(send.sent, "; "), "bearing: new is \u2764\ufe0f"; got != want || s.asking != nil {
		t.Errorf("sent %q, want %q", got, want)
	}
	if device := b.snapshot(true).Models[0].Samples[0].Device; device != "hall\u00a0one" {
		t.Errorf("the label goes to device %q", device)
	}
	if text := s.View().Content; strings.ContainsAny(text, "\ufe0f\u00a0") {
		t.Errorf("after the answer the display is\n%q", text)
	}
}

// A paused display does not change; a resumed one shows the present state.
func TestProgramPauses(t *testing.T) {
	b := receivedState(t)
	s := &program{ctx: t.Context(), snapshot: func() *view { return b.snapshot(true) }, send: &fakeSender{}}
	s.Init()
	s.Update(pressed("p"))
	b.receive("edge/hall/bearing/prediction", []byte(`{"id":"newcomer","seq":11,"class":"ok","confidence":1}`), false)
	if s.Update(drawMsg{}); strings.Contains(s.View().Content, "newcomer") {
		t.Error("a paused program shows a new sample")
	}
	if s.Update(pressed("p")); !strings.Contains(s.View().Content, "newcomer") {
		t.Error("a resumed program does not show the new sample")
	}
}
