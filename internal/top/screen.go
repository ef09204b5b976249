package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"edge/internal/terminal"
)

const (
	drawEvery = 250 * time.Millisecond
	keysHelp  = "q quit  tab model  p pause  ↑↓ choose sample"
	moreKeys  = "  l label  a asked  s learning"
	noteLasts = 10 * time.Second
)

// screen is `edge top` on a terminal: a bubbletea model of a watch.
type screen struct {
	ctx  context.Context // of what it sends
	look func() *boardView
	send sender

	shown         *boardView
	model         string // name of the one that is shown
	width, height int
	selected      uint64 // sample, by its sequence number; 0 for the newest
	paused        bool
	asking        *question
	note          string
	noted         time.Time
}

// sender is the part of a watch that speaks.
type sender interface {
	label(ctx context.Context, model string, s boardSample, class string) error
	learn(ctx context.Context, model string, on bool) error
}

// question asks what class a sample is.
type question struct {
	model   string
	sample  boardSample
	classes []string
	at      int // chosen
}

// Messages of the screen to itself.
type (
	drawMsg time.Time
	doneMsg struct {
		note string
		err  error
	}
)

// showScreen runs until ctx or the user ends it.
func showScreen(ctx context.Context, w *watch, model string, in io.Reader, out io.Writer) error {
	s := &screen{ctx: ctx, look: w.look, send: w, model: model}
	_, err := tea.NewProgram(s, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler()).Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return nil
	}
	return err
}

// Init begins to draw.
func (s *screen) Init() tea.Cmd {
	s.shown = s.look()
	return nextDraw()
}

func nextDraw() tea.Cmd {
	return tea.Tick(drawEvery, func(t time.Time) tea.Msg { return drawMsg(t) })
}

// Update takes a key, a look or the answer to what was sent.
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = msg.Width, msg.Height
	case drawMsg:
		if !s.paused {
			s.shown = s.look()
		}
		return s, nextDraw()
	case doneMsg:
		s.say("%s", msg.note)
		if msg.err != nil {
			s.say("not sent: %v", msg.err)
		}
	case tea.KeyPressMsg:
		if s.asking != nil {
			return s, s.answer(msg.String())
		}
		return s, s.press(msg.String())
	}
	return s, nil
}

func (s *screen) say(format string, args ...any) {
	s.note, s.noted = terminal.Plain(fmt.Sprintf(format, args...)), time.Now()
}

// press carries a key out.
func (s *screen) press(key string) tea.Cmd {
	models := s.shown.Models
	switch key {
	case "q", "ctrl+c", "esc":
		return tea.Quit
	case "p", "space":
		if s.paused = !s.paused; !s.paused {
			s.shown, s.selected = s.look(), 0
		}
	case "tab", "right", "shift+tab", "left":
		if n := len(models); n > 0 {
			step := 1
			if key == "shift+tab" || key == "left" {
				step = n - 1
			}
			s.model, s.selected = models[(s.at()+step)%n].Model, 0
		}
	case "up", "k", "down", "j":
		s.choose(map[string]int{"up": -1, "k": -1, "down": 1, "j": 1}[key])
	case "l", "enter":
		s.ask()
	case "a":
		s.askNext()
	case "s":
		return s.switchLearning()
	}
	return nil
}

// at is the place of the model that is shown.
func (s *screen) at() int {
	return max(slices.IndexFunc(s.shown.Models, func(m boardModelView) bool { return m.Model == s.model }), 0)
}

// current is the model that is shown; nil if there is none.
func (s *screen) current() *boardModelView {
	if len(s.shown.Models) == 0 {
		return nil
	}
	return &s.shown.Models[s.at()]
}

// choose moves the choice among the samples, which stand still from then on;
// above the first there is none.
func (s *screen) choose(step int) {
	m := s.current()
	if m == nil || len(m.Samples) == 0 {
		return
	}
	at := slices.IndexFunc(m.Samples, func(b boardSample) bool { return b.Seq == s.selected }) + step
	if at < 0 {
		s.selected = 0
		return
	}
	s.paused = true
	s.selected = m.Samples[min(at, len(m.Samples)-1)].Seq
}

// ask begins the question what class a sample is.
func (s *screen) ask() {
	m := s.current()
	switch {
	case m == nil || len(m.Samples) == 0:
		s.say("there is no sample yet")
		return
	case !s.shown.Control:
		s.say("control is not enabled on this node: control: {enabled: true}")
		return
	case len(m.Classes) == 0:
		s.say("the model knows no class yet: the first labels have to come with samples")
		return
	}
	at := max(slices.IndexFunc(m.Samples, func(b boardSample) bool { return b.Seq == s.selected }), 0)
	sample := m.Samples[at]
	if sample.ID == nil && at > 0 {
		s.say("this sample has no id; of those only the newest can be labelled")
		return
	}
	s.asking = &question{model: m.Model, sample: sample, classes: m.Classes, at: max(slices.Index(m.Classes, sample.Class), 0)}
}

// askNext asks about the newest sample that the node asks about.
func (s *screen) askNext() {
	m := s.current()
	if m == nil {
		return
	}
	at := slices.IndexFunc(m.Samples, func(b boardSample) bool { return b.Asked != "" && b.Label == "" && !b.Learned })
	if at < 0 {
		s.say("the node asks for no label among the samples that are shown here")
		return
	}
	s.selected, s.paused = m.Samples[at].Seq, true
	s.ask()
}

// answer carries a key out while a question is asked.
func (s *screen) answer(key string) tea.Cmd {
	q := s.asking
	n := len(q.classes)
	switch key {
	case "esc", "q":
		s.asking = nil
	case "ctrl+c":
		return tea.Quit
	case "left", "up", "shift+tab":
		q.at = (q.at + n - 1) % n
	case "right", "down", "tab":
		q.at = (q.at + 1) % n
	case "enter":
		return s.tell(q.classes[q.at])
	default:
		if len(key) == 1 && key[0] >= '1' && key[0] <= '9' && int(key[0]-'1') < n {
			return s.tell(q.classes[key[0]-'1'])
		}
	}
	return nil
}

// tell sends the answer.
func (s *screen) tell(class string) tea.Cmd {
	q := s.asking
	s.asking = nil
	if q.sample.ID == nil {
		if now := s.look(); !slices.ContainsFunc(now.Models, func(m boardModelView) bool {
			return m.Model == q.model && len(m.Samples) > 0 && m.Samples[0].Seq == q.sample.Seq
		}) {
			s.say("another sample has come meanwhile, and this one has no id: nothing was sent")
			return nil
		}
	}
	return func() tea.Msg {
		return doneMsg{fmt.Sprintf("sent: %s is %s", q.sample.idText(), class), s.send.label(s.ctx, q.model, q.sample, class)}
	}
}

func (s *screen) switchLearning() tea.Cmd {
	m := s.current()
	if m == nil {
		return nil
	}
	if !s.shown.Control {
		s.say("control is not enabled on this node: control: {enabled: true}")
		return nil
	}
	name, on := m.Model, !m.Learning
	return func() tea.Msg {
		return doneMsg{fmt.Sprintf("asked: learning of %s %s", name, map[bool]string{true: "on", false: "off"}[on]), s.send.learn(s.ctx, name, on)}
	}
}

// View draws.
func (s *screen) View() tea.View {
	p := panel{width: s.width, height: s.height, model: s.at(), selected: s.selected, paused: s.paused, paint: coloured}
	if s.width == 0 || s.height == 0 { // the terminal has not said
		p.width, p.height = 80, 24
	}
	p.last = s.lastLines(p.width)
	v := tea.NewView(strings.Join(p.lines(s.shown), "\n"))
	v.AltScreen = true
	v.WindowTitle = "edge top " + s.shown.Node
	return v
}

// lastLines are a question or a note, and the keys.
func (s *screen) lastLines(width int) []string {
	if q := s.asking; q != nil {
		p := panel{width: width, paint: coloured}
		segments := []segment{{titleLook, q.sample.idText() + " is"}}
		const shown = 9
		first := max(q.at-shown+1, 0)
		for i := first; i < min(len(q.classes), first+shown); i++ {
			as, name := plainLook, q.classes[i]
			if i < shown {
				name = fmt.Sprintf("%d %s", i+1, name)
			}
			if i == q.at {
				as, name = chosenLook, "["+name+"]"
			}
			segments = append(segments, segment{as, name})
		}
		return []string{p.row(segments...), coloured(faintLook, fit("←→ choose  enter send  1-9 send at once  esc leave", width))}
	}
	note := ""
	if time.Since(s.noted) < noteLasts {
		note = s.note
	}
	keys := keysHelp
	if s.shown.Control {
		keys += moreKeys
	}
	return []string{fit(note, width), coloured(faintLook, fit(keys, width))}
}

// coloured gives texts their look by the terminal's own sixteen colours; what
// matters is also said in words, for terminals that have none.
func coloured(as look, text string) string {
	var style ansi.Style
	switch as {
	case titleLook:
		style = style.Bold()
	case faintLook:
		style = style.Faint()
	case goodLook:
		style = style.ForegroundColor(ansi.Green)
	case badLook:
		style = style.Bold().ForegroundColor(ansi.Red)
	case chosenLook:
		style = style.Reverse(true)
	default:
		return text
	}
	return style.Styled(text)
}
