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
	"charm.land/lipgloss/v2"

	"edge/internal/terminal"
)

const (
	drawEvery = 250 * time.Millisecond
	keysHelp  = "q quit  tab model  p pause  ↑↓ choose sample"
	moreKeys  = "  l label  a asked  s learning"
	noteLasts = 10 * time.Second

	defaultWidth, defaultHeight = 80, 24 // of a terminal whose size is not known
)

// program is `edge top` on a terminal, a bubbletea model.
type program struct {
	ctx      context.Context // of sent messages
	snapshot func() *view
	send     sender

	shown         *view
	model         string // name of the shown one
	width, height int
	selected      uint64 // sequence number of the chosen sample; 0 for the newest
	paused        bool
	asking        *question
	note          string
	noted         time.Time
}

// sender sends the messages of the program. *client is one.
type sender interface {
	label(ctx context.Context, model string, s sampleView, class string) error
	learn(ctx context.Context, model string, on bool) error
}

// question asks the user for the class of a sample.
type question struct {
	model   string
	sample  sampleView
	classes []string
	at      int // index of the chosen class
}

// Messages of the program to itself.
type (
	drawMsg time.Time
	doneMsg struct {
		note string
		err  error
	}
)

// runProgram runs until ctx ends or the user quits.
func runProgram(ctx context.Context, c *client, model string, in io.Reader, out io.Writer) error {
	s := &program{ctx: ctx, snapshot: c.snapshot, send: c, model: model}
	_, err := tea.NewProgram(s, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler(), tea.WithFilter(sized)).Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return nil
	}
	return err
}

// sized gives a terminal that does not know its size, as a serial line, that of a classic one: bubbletea
// would draw nothing on it.
func sized(_ tea.Model, msg tea.Msg) tea.Msg {
	if size, ok := msg.(tea.WindowSizeMsg); ok && (size.Width == 0 || size.Height == 0) {
		return tea.WindowSizeMsg{Width: defaultWidth, Height: defaultHeight}
	}
	return msg
}

// Init takes the first snapshot and begins to draw.
func (p *program) Init() tea.Cmd {
	p.shown = p.snapshot()
	return nextDraw()
}

func nextDraw() tea.Cmd {
	return tea.Tick(drawEvery, func(t time.Time) tea.Msg { return drawMsg(t) })
}

// Update handles a key, a redraw, or the result of a sent message.
func (p *program) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		p.width, p.height = msg.Width, msg.Height
	case drawMsg:
		if !p.paused {
			p.shown = p.snapshot()
		}
		return p, nextDraw()
	case doneMsg:
		p.notify("%s", msg.note)
		if msg.err != nil {
			p.notify("not sent: %v", msg.err)
		}
	case tea.KeyPressMsg:
		if p.asking != nil {
			return p, p.answer(msg.String())
		}
		return p, p.press(msg.String())
	}
	return p, nil
}

func (p *program) notify(format string, args ...any) {
	p.note, p.noted = terminal.Plain(fmt.Sprintf(format, args...)), time.Now()
}

// press handles a key.
func (p *program) press(key string) tea.Cmd {
	models := p.shown.Models
	switch key {
	case "q", "ctrl+c", "esc":
		return tea.Quit
	case "p", "space":
		if p.paused = !p.paused; !p.paused {
			p.shown, p.selected = p.snapshot(), 0
		}
	case "tab", "right", "shift+tab", "left":
		if n := len(models); n > 0 {
			step := 1
			if key == "shift+tab" || key == "left" {
				step = n - 1
			}
			p.model, p.selected = models[(p.at()+step)%n].Model, 0
		}
	case "up", "k", "down", "j":
		p.choose(map[string]int{"up": -1, "k": -1, "down": 1, "j": 1}[key])
	case "l", "enter":
		p.ask()
	case "a":
		p.askNext()
	case "s":
		return p.switchLearning()
	}
	return nil
}

// at returns the index of the shown model.
func (p *program) at() int {
	return max(slices.IndexFunc(p.shown.Models, func(m modelView) bool { return m.Model == p.model }), 0)
}

// current returns the shown model, nil without models.
func (p *program) current() *modelView {
	if len(p.shown.Models) == 0 {
		return nil
	}
	return &p.shown.Models[p.at()]
}

// choose moves the choice among the samples and pauses the display. Above the first
// sample it ends the choice.
func (p *program) choose(step int) {
	m := p.current()
	if m == nil || len(m.Samples) == 0 {
		return
	}
	at := slices.IndexFunc(m.Samples, func(b sampleView) bool { return b.Seq == p.selected }) + step
	if at < 0 {
		p.selected = 0
		return
	}
	p.paused = true
	p.selected = m.Samples[min(at, len(m.Samples)-1)].Seq
}

// ask begins the question for the class of the chosen sample.
func (p *program) ask() {
	m := p.current()
	switch {
	case m == nil || len(m.Samples) == 0:
		p.notify("the model has no sample yet")
		return
	case !p.shown.Control:
		p.notify("control is not enabled on this node: control: {enabled: true}")
		return
	case !m.Learning:
		p.notify("the model does not learn: learning is switched off, or it follows a fleet")
		return
	case len(m.Classes) == 0:
		p.notify("the model knows no class yet: the first labels must come with samples")
		return
	}
	at := max(slices.IndexFunc(m.Samples, func(b sampleView) bool { return b.Seq == p.selected }), 0)
	sample := m.Samples[at]
	if sample.ID == nil && at > 0 {
		p.notify("this sample has no id; of those only the newest can be labelled")
		return
	}
	p.asking = &question{model: m.Model, sample: sample, classes: m.Classes, at: max(slices.Index(m.Classes, sample.Class), 0)}
}

// askNext asks about the newest sample whose label the node queries.
func (p *program) askNext() {
	m := p.current()
	if m == nil {
		return
	}
	at := slices.IndexFunc(m.Samples, func(b sampleView) bool { return b.Asked != "" && b.Label == "" && !b.Learned })
	if at < 0 {
		p.notify("the node asks for no label among the samples that are shown here")
		return
	}
	p.selected, p.paused = m.Samples[at].Seq, true
	p.ask()
}

// answer handles a key during a question.
func (p *program) answer(key string) tea.Cmd {
	q := p.asking
	n := len(q.classes)
	switch key {
	case "esc", "q":
		p.asking = nil
	case "ctrl+c":
		return tea.Quit
	case "left", "up", "shift+tab":
		q.at = (q.at + n - 1) % n
	case "right", "down", "tab":
		q.at = (q.at + 1) % n
	case "enter":
		return p.sendLabel(q.classes[q.at])
	default:
		if len(key) == 1 && key[0] >= '1' && key[0] <= '9' && int(key[0]-'1') < n {
			return p.sendLabel(q.classes[key[0]-'1'])
		}
	}
	return nil
}

// sendLabel sends the answer of a question.
func (p *program) sendLabel(class string) tea.Cmd {
	q := p.asking
	p.asking = nil
	if q.sample.ID == nil {
		if now := p.snapshot(); !slices.ContainsFunc(now.Models, func(m modelView) bool {
			return m.Model == q.model && len(m.Samples) > 0 && m.Samples[0].Seq == q.sample.Seq
		}) {
			p.notify("another sample has come meanwhile, and this one has no id: nothing was sent")
			return nil
		}
	}
	return func() tea.Msg {
		return doneMsg{fmt.Sprintf("sent: %s is %s", q.sample.idText(), class), p.send.label(p.ctx, q.model, q.sample, class)}
	}
}

func (p *program) switchLearning() tea.Cmd {
	m := p.current()
	if m == nil {
		return nil
	}
	if !p.shown.Control {
		p.notify("control is not enabled on this node: control: {enabled: true}")
		return nil
	}
	name, on := m.Model, !m.Learning
	return func() tea.Msg {
		return doneMsg{fmt.Sprintf("asked: learning of %s %s", name, map[bool]string{true: "on", false: "off"}[on]), p.send.learn(p.ctx, name, on)}
	}
}

// View draws the program.
func (p *program) View() tea.View {
	l := layout{width: p.width, height: p.height, model: p.at(), selected: p.selected, paused: p.paused, styles: coloured()}
	if p.width == 0 || p.height == 0 { // the terminal's size is not known yet
		l.width, l.height = defaultWidth, defaultHeight
	}
	l.last = p.lastLines(l.width)
	v := tea.NewView(strings.Join(l.lines(p.shown), "\n"))
	v.AltScreen = true
	v.WindowTitle = "edge top " + p.shown.Node
	return v
}

// lastLines returns a question or a note, and the keys.
func (p *program) lastLines(width int) []string {
	l := layout{width: width, styles: coloured()}
	if q := p.asking; q != nil {
		segments := []segment{{l.styles.title, q.sample.idText() + " is"}}
		const shown = 9
		first := max(q.at-shown+1, 0)
		for i := first; i < min(len(q.classes), first+shown); i++ {
			as, name := lipgloss.NewStyle(), terminal.Plain(q.classes[i])
			if i < shown {
				name = fmt.Sprintf("%d %s", i+1, name)
			}
			if i == q.at {
				as, name = l.styles.chosen, "["+name+"]"
			}
			segments = append(segments, segment{as, name})
		}
		return []string{l.row(segments...), l.row(segment{l.styles.faint, "←→ choose  enter send  1-9 send at once  esc leave"})}
	}
	note := ""
	if time.Since(p.noted) < noteLasts {
		note = p.note
	}
	keys := keysHelp
	if p.shown.Control {
		keys += moreKeys
	}
	return []string{l.row(segment{text: note}), l.row(segment{l.styles.faint, keys})}
}
