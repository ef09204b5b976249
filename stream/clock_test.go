package stream

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"edge/online"
	"edge/stream/codec"
)

// settings are changes of the wall clock between two readings of it.
var settings = map[string]func(time.Time) time.Time{
	"untouched":          func(t time.Time) time.Time { return t },
	"ten years ahead":    func(t time.Time) time.Time { return setWall(t, t.AddDate(10, 0, 0)) },
	"ten years back":     func(t time.Time) time.Time { return setWall(t, t.AddDate(-10, 0, 0)) },
	"back to 1970":       func(t time.Time) time.Time { return setWall(t, time.Unix(0, 0)) },
	"stopped since 1970": func(t time.Time) time.Time { return setWall(t, time.Unix(1, 0)) },
}

// setWall returns t with its monotonic reading and the wall clock reading of wall. A
// time with both readings holds the seconds since 1885 and the nanoseconds in its
// first word.
func setWall(t, wall time.Time) time.Time {
	const hasMonotonic, since1885 = 1 << 63, -2682288000
	word := (*uint64)(unsafe.Pointer(&t))
	*word = hasMonotonic | uint64(wall.Unix()-since1885)<<30 | uint64(wall.Nanosecond())
	return t
}

func TestSetWall(t *testing.T) {
	now := time.Now()
	for name, set := range settings {
		at := set(now.Add(time.Minute))
		if got := at.Sub(now); got != time.Minute {
			t.Errorf("%s: a minute later is %v later", name, got)
		}
		if name != "untouched" && at.Round(0).Sub(now.Round(0)).Abs() < 9*365*24*time.Hour {
			t.Errorf("%s: the wall clock says %v", name, at)
		}
	}
}

// Under every change of the wall clock, samples wait for their label for the right
// time, limits allow the right number, and minibatches and commits are due at the
// right time.
func TestWallClockJumps(t *testing.T) {
	start := time.Now()
	for name, set := range settings {
		after := func(d time.Duration) time.Time { return set(start.Add(d)) }
		t.Run(name, func(t *testing.T) {
			w, _ := newPendingStore(pendingFor(time.Hour, 10), nil, start)
			w.add(pendingSample{sample: online.Pending{Key: 1}}, start)
			if gone := w.expire(after(59 * time.Minute)); len(gone) != 0 {
				t.Error("a sample expires before its time")
			}
			if gone := w.expire(after(61 * time.Minute)); len(gone) != 1 {
				t.Error("a sample does not expire")
			}

			l := &limiter{interval: time.Minute, burst: 1}
			for _, look := range []struct {
				at   time.Time
				want bool
			}{{start, true}, {after(30 * time.Second), false}, {after(61 * time.Second), true}, {start.Add(90 * time.Second), false}} {
				if got := l.allow(look.at); got != look.want {
					t.Errorf("the limit allows %v after %v, want %v", got, look.at.Sub(start), look.want)
				}
			}

			joined := values()
			joined.Join = codec.Join{Window: time.Minute, Devices: 2}
			for at, want := range map[time.Duration]int{59 * time.Second: 3, 61 * time.Second: 0} {
				g := newJoiner(joined, new(atomic.Uint64))
				var x []float64
				for i, topic := range []string{"plant/p1/a", "plant/p1/b", "plant/p1/c/max"} {
					now := start
					if i == 2 {
						now = after(at)
					}
					var err error
					if x, err = g.add(topic, "p1", 1, now); err != nil {
						t.Fatal(err)
					}
				}
				if len(x) != want {
					t.Errorf("values %v apart make a sample of %d features, want %d", at, len(x), want)
				}
			}

			cfg, model := testConfig()
			model.Batch = online.Batch{MaxSize: 16, MaxWait: time.Second}
			node := newRig(t, newFakeJournal(), cfg, model)
			node.stop() // its committer is ours now
			c := node.node.committer
			c.group.reset()
			m := c.models[0]
			m.countMinibatch([]online.Record{{Event: online.Event{Kind: online.Observe}}}, start, c.counts)
			if c.closeMinibatches(after(900 * time.Millisecond)); len(c.group.records) != 0 {
				t.Error("a minibatch is closed too early")
			}
			if c.closeMinibatches(after(1100 * time.Millisecond)); len(c.group.records) != 1 {
				t.Error("a minibatch is not closed")
			}
			if due := c.due().Sub(start); due != time.Second {
				t.Errorf("the committer looks again after %v, want 1s", due)
			}
		})
	}
}

// Timestamps in payloads decide nothing, however wrong they are.
func TestStampsDecideNothing(t *testing.T) {
	var want []string
	for i, ts := range []string{`"2026-11-20T20:29:45Z"`, `"1970-01-01T00:00:00Z"`, `"2036-01-01T00:00:00Z"`, `"yesterday"`, "0", "-1", "1e300", "null"} {
		in(ts, t, func(t *testing.T) {
			r := one(t)
			r.send(p7, fmt.Sprintf(`{"id":"a","ts":%s,"features":[1,0],"label":"ok"}`, ts), fmt.Sprintf(`{"id":"b","ts":%s,"features":[2,0]}`, ts))
			time.Sleep(time.Hour)
			r.send(p7, fmt.Sprintf(`{"id":"b","ts":%s,"label":"worn"}`, ts))
			time.Sleep(time.Minute)
			got := append(r.models["bearing"].learnt(), fmt.Sprint(len(r.acks()), r.node.Stats().Models["bearing"].Pending, r.rejects()))
			if i == 0 {
				want = got
			}
			equal(t, "learnt, acknowledged, waiting, rejected", got, want)
		})
	}
	if len(want) != 3 {
		t.Errorf("with a sane timestamp: %q", want)
	}
}

// No code removes the monotonic reading of a time, or makes a time without it, except
// to print it, or to read one that a device wrote, and in package signal, whose times
// are those of payloads.
func TestTimesStayMonotonic(t *testing.T) {
	printing := map[string]bool{
		"stamp": true, "dayAndTime": true, "appendTime": true, "appendTimestamp": true, "unusedName": true,
		"sameFiles":     true, // compares, for equality
		"parseCalendar": true, // reads the time in a payload, which no clock has
		"strptime":      true, // the same of a file
	}
	stripping := map[string]bool{
		"Unix": true, "UnixMilli": true, "UnixMicro": true, "UnixNano": true, "UTC": true, "Local": true, "In": true, "AddDate": true,
		"Parse": true, "ParseInLocation": true, "ModTime": true, "GobEncode": true, "Date": true,
	}
	files := 0
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") ||
			strings.Contains(path, "packaging") || strings.HasPrefix(path, "../stream/signal/") || strings.HasPrefix(path, "../test/") || strings.HasPrefix(path, "../ci/") { // which never run on a device
			return err
		}
		files++
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && printing[f.Name.Name] {
				continue
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				sel, ok := call.Fun.(*ast.SelectorExpr)
				if !ok || !stripping[sel.Sel.Name] {
					return true
				}
				if pkg, ok := sel.X.(*ast.Ident); ok && (pkg.Name == "url" || pkg.Name == "config" || pkg.Name == "gjson" || pkg.Name == "textproto" || pkg.Name == "unicode") {
					return true // another package's Parse
				}
				t.Errorf("%s: %s works with the wall clock alone", set.Position(n.Pos()), sel.Sel.Name)
				return true
			})
		}
		return nil
	})
	if err != nil || files < 50 {
		t.Errorf("%d files read, %v", files, err)
	}
}
