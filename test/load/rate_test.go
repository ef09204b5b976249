package load

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"
	"golang.org/x/sys/unix"

	"edge/internal/broker/brokertest"
	"edge/test/files"
	"edge/test/harness"
)

// beEcho makes the test program an echo: it publishes the messages of questionsTopic
// on answersTopic. It is paho without additions, the lower bound of the cost of any
// program built on it.
const beEcho = "EDGE_TEST_IS_ECHO"

const (
	questionsTopic = "sensors/gas"
	answersTopic   = "edge/test/gas/prediction"
	outstanding    = 200 // messages on their way to an answer: mosquitto drops above 1000
)

// echo serves until the process is killed.
func echo(broker string) {
	client := mqtt.NewClient(mqtt.NewClientOptions().AddBroker(broker).SetClientID("echo"))
	if t := client.Connect(); t.Wait() && t.Error() != nil {
		fmt.Fprintln(os.Stderr, t.Error())
		os.Exit(1)
	}
	t := client.Subscribe(questionsTopic, 1, func(c mqtt.Client, m mqtt.Message) { c.Publish(answersTopic, 1, false, m.Payload()) })
	if t.Wait(); t.Error() != nil {
		fmt.Fprintln(os.Stderr, t.Error())
		os.Exit(1)
	}
	select {}
}

// gasPayloads are JSON objects with d features about the centre of one of c classes.
func gasPayloads(n, c, d int, label bool) [][]byte {
	rng := rand.New(rand.NewPCG(7, 7))
	centres := make([]float64, c*d)
	for i := range centres {
		centres[i] = 2 * rng.NormFloat64()
	}
	payloads := make([][]byte, n)
	for i := range payloads {
		class := rng.IntN(c)
		p := []byte(`{"features":[`)
		for j := range d {
			if j > 0 {
				p = append(p, ',')
			}
			p = strconv.AppendFloat(p, centres[class*d+j]+rng.NormFloat64(), 'g', 7, 64)
		}
		p = append(p, ']')
		if label {
			p = fmt.Appendf(p, `,"label":"gas%d"`, class)
		}
		payloads[i] = append(p, '}')
	}
	return payloads
}

// asker publishes questions with QoS 1 and receives the answers, which come in the
// same order. It uses little processor time itself.
type asker struct {
	b       testing.TB
	conn    net.Conn
	answers chan time.Time
}

func newAsker(b testing.TB, broker string) *asker {
	conn, err := net.Dial("tcp", strings.TrimPrefix(broker, "mqtt://"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	hello := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	hello.ProtocolName, hello.ProtocolVersion, hello.CleanSession, hello.ClientIdentifier = "MQTT", 4, true, "asker"
	subscribe := packets.NewControlPacket(packets.Subscribe).(*packets.SubscribePacket)
	subscribe.Topics, subscribe.Qoss, subscribe.MessageID = []string{answersTopic}, []byte{0}, 1
	for _, p := range []packets.ControlPacket{hello, subscribe} {
		if err := p.Write(conn); err != nil {
			b.Fatal(err)
		}
		if _, err := packets.ReadPacket(conn); err != nil {
			b.Fatal(err)
		}
	}
	a := &asker{b: b, conn: conn, answers: make(chan time.Time, 2*outstanding)}
	go a.listen()
	return a
}

// listen sends the time of every PUBLISH packet to answers, and skips
// acknowledgements.
func (a *asker) listen() {
	in := bufio.NewReaderSize(a.conn, 1<<16)
	for {
		kind, err := in.ReadByte()
		if err != nil {
			close(a.answers)
			return
		}
		length, err := binary.ReadUvarint(in) // the same as MQTT's
		if err != nil {
			return
		}
		if _, err := in.Discard(int(length)); err != nil {
			return
		}
		if kind>>4 == packets.Publish {
			a.answers <- time.Now()
		}
	}
}

// ask publishes n questions at a rate per second, or with 0 as fast as they are
// answered. It returns the total time and the latency of every answer.
func (a *asker) ask(payloads [][]byte, n int, rate float64) (took time.Duration, latencies []time.Duration) {
	frames := make([][]byte, len(payloads))
	at := make([]int, len(payloads)) // of the packet's identifier
	for i, p := range payloads {
		frame := []byte{packets.Publish<<4 | 1<<1}
		frame = binary.AppendUvarint(frame, uint64(2+len(questionsTopic)+2+len(p)))
		frame = binary.BigEndian.AppendUint16(frame, uint16(len(questionsTopic)))
		frame = append(frame, questionsTopic...)
		at[i] = len(frame)
		frames[i] = append(append(frame, 0, 0), p...)
	}
	out := bufio.NewWriterSize(a.conn, 1<<16)
	sent := make([]time.Time, n)
	began := time.Now()
	next, answered := 0, 0
	flush := func() {
		if err := out.Flush(); err != nil {
			a.b.Fatal(err)
		}
	}
	for answered < n {
		may := next < n && next-answered < outstanding
		if may && rate > 0 {
			may = time.Since(began).Seconds()*rate >= float64(next)
		}
		if may {
			f := frames[next%len(frames)]
			binary.BigEndian.PutUint16(f[at[next%len(frames)]:], uint16(1+next%60000))
			sent[next] = time.Now()
			if _, err := out.Write(f); err != nil {
				a.b.Fatal(err)
			}
			if next++; rate > 0 {
				flush()
			}
			continue
		}
		flush()
		wait := brokertest.Patience
		if rate > 0 && next < n {
			wait = max(0, time.Until(began.Add(time.Duration(float64(next)/rate*1e9))))
		}
		select {
		case t, ok := <-a.answers:
			if !ok {
				a.b.Fatal("the broker ended the connection")
			}
			latencies = append(latencies, t.Sub(sent[answered]))
			answered++
		case <-time.After(wait):
			if wait == brokertest.Patience {
				a.b.Fatalf("%d answers to %d questions", answered, next)
			}
		}
	}
	return time.Since(began), latencies
}

func quantile(d []time.Duration, q float64) time.Duration {
	slices.Sort(d)
	return d[min(len(d)-1, int(q*float64(len(d))))]
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// answerer is a program that is measured while it answers.
type answerer struct {
	*asker
	pid int
}

// cpu is the processor time that the process has used, by its clock (clock_getcpuclockid).
func (p *answerer) cpu() time.Duration {
	const all = 2 // user and system time
	var used unix.Timespec
	if err := unix.ClockGettime(int32(^p.pid<<3|all), &used); err != nil {
		p.b.Fatal(err)
	}
	return time.Duration(used.Nano())
}

// resident is the resident set now, in MB.
func (p *answerer) resident() float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		p.b.Fatal(err)
	}
	kib, _ := strconv.ParseFloat(strings.Fields(regexp.MustCompile(`VmRSS:.*`).FindString(string(status)))[1], 64)
	return kib * 1024 / 1e6
}

// figures are measured values by unit, one for each round.
type figures map[string][]float64

func (f figures) add(unit string, v float64) { f[unit] = append(f[unit], v) }

// ratio adds the quotient of the newest figures.
func (f figures) ratio(unit, over, under string) {
	f.add(unit, f[over][len(f[over])-1]/f[under][len(f[under])-1])
}

// flood asks n questions as fast as they are answered.
func (f figures) flood(p *answerer, what string, payloads [][]byte, n int) {
	used := p.cpu()
	took, _ := p.ask(payloads, n, 0)
	f.add(what+"-msg/s", float64(n)/took.Seconds())
	f.add(what+"-cpu-µs", (p.cpu()-used).Seconds()*1e6/float64(n))
}

// pace asks 1000 questions a second.
func (f figures) pace(p *answerer, what string, payloads [][]byte, n int) {
	used := p.cpu()
	_, l := p.ask(payloads, n, 1000)
	f.add(what+"-paced-cpu-µs", (p.cpu()-used).Seconds()*1e6/float64(n))
	f.add(what+"-p50-ms", quantile(l, 0.5).Seconds()*1e3)
	f.add(what+"-p99-ms", quantile(l, 0.99).Seconds()*1e3)
}

// answerers are the programs that are measured beside each other.
type answerers struct {
	b      testing.TB
	broker string
	config string
}

// echoing runs f with the echo.
func (s *answerers) echoing(f func(*answerer)) {
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), beEcho+"="+s.broker), os.Stderr
	if err := cmd.Start(); err != nil {
		s.b.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	s.with(cmd.Process.Pid, f)
}

// predicting runs f with a daemon.
func (s *answerers) predicting(f func(*answerer)) {
	d := harness.Start(s.b, s.config)
	defer d.Stop()
	d.Await("connected to the broker")
	s.with(d.Process.Pid, f)
	(&answerer{&asker{b: s.b}, d.Process.Pid}).settle() // learning may be behind
}

// settle waits until the program computes nothing: less than 10 ms in a second.
func (p *answerer) settle() {
	for idle := false; !idle; {
		used := p.cpu()
		time.Sleep(time.Second)
		idle = p.cpu()-used < 10*time.Millisecond
	}
}

func (s *answerers) with(pid int, f func(*answerer)) {
	time.Sleep(500 * time.Millisecond) // until it has subscribed
	a := newAsker(s.b, s.broker)
	f(&answerer{a, pid})
	a.conn.Close()
	for range a.answers { // until it has ended
	}
}

// BenchmarkEndToEnd carries JSON objects through mosquitto with QoS 1, to a
// daemon with the default model and, side by side, to a bare echo on paho.
// -benchtime 20000x sets the number of messages of a round. Figures are medians
// of five rounds; processor times are those of daemon or echo, for a message.
func BenchmarkEndToEnd(b *testing.B) {
	const rounds = 5
	for _, c := range []struct {
		classes, inducing, features int
		durability, settings        string
	}{
		{6, 50, 33, "strict", "set_tcp_nodelay true"},
		{6, 50, 33, "relaxed", "set_tcp_nodelay true"},
		{6, 50, 33, "strict", ""}, // mosquitto as it comes
		{10, 100, 128, "strict", "set_tcp_nodelay true"},
	} {
		name := fmt.Sprintf("C=%d/M=%d/D=%d/%s", c.classes, c.inducing, c.features, c.durability)
		if c.settings == "" {
			name += "/nagle"
		}
		b.Run(name, func(b *testing.B) {
			addr := brokertest.FreeAddress(b)
			b.Cleanup(brokertest.MosquittoWith(b, addr, c.settings+"\nmax_queued_messages 0\n"))
			folder := b.TempDir()
			s := &answerers{b: b, broker: "mqtt://" + addr}
			classes := make([]string, c.classes)
			for i := range classes {
				classes[i] = fmt.Sprintf("gas%d", i)
			}
			s.config = files.Write(b, "edge.yaml", fmt.Sprintf(`
node: test
mqtt: {servers: ["%s"], persistent_session: false}
streams: {gas: {topics: [%s], dimension: %d}}
models: {gas: {streams: [gas], inducing: %d, classes: {names: [%s]}}}
store: {path: "%s", durability: %s}
memory_limit: 45MiB # 70 %% of 64 MiB
http: {listen: ""}
`, s.broker, questionsTopic, c.features, c.inducing, strings.Join(classes, ", "), filepath.Join(folder, "edge.db"), c.durability))
			plain, labelled := gasPayloads(2000, c.classes, c.features, false), gasPayloads(2000, c.classes, c.features, true)
			n, f := max(b.N, 1000), figures{}
			for range rounds {
				s.echoing(func(p *answerer) {
					f.flood(p, "echo", plain, n)
					f.pace(p, "echo", plain, n/4)
				})
				s.predicting(func(p *answerer) {
					p.ask(labelled, 1000, 0) // until hyper-parameters are learnt
					time.Sleep(2 * time.Second)
					f.add("idle-MB", p.resident())
					f.flood(p, "predicted", plain, n)
					f.pace(p, "predicted", plain, n/4)
					f.add("busy-MB", p.resident())
					f.flood(p, "learnt", labelled, n)
				})
				f.ratio("predicted/echo", "predicted-msg/s", "echo-msg/s")
				f.ratio("learnt/echo", "learnt-msg/s", "echo-msg/s")
				f.ratio("predicted/echo-p99", "predicted-p99-ms", "echo-p99-ms")
				f.ratio("predicted/echo-paced-cpu", "predicted-paced-cpu-µs", "echo-paced-cpu-µs")
			}
			f.add("sync-ms", syncTime(b, folder).Seconds()*1e3)
			b.ReportMetric(0, "ns/op")
			for unit, v := range f {
				b.ReportMetric(median(v), unit)
			}
		})
	}
}

// syncTime is the median time of a write of two pages with its sync, twice, as
// a commit has them.
func syncTime(b testing.TB, folder string) time.Duration {
	f, err := os.Create(filepath.Join(folder, "sync"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	var took []time.Duration
	for i := range 200 {
		began := time.Now()
		for range 2 {
			if _, err := f.WriteAt(make([]byte, 8192), int64(i%16)*8192); err != nil {
				b.Fatal(err)
			}
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
		}
		took = append(took, time.Since(began))
	}
	return quantile(took, 0.5)
}
