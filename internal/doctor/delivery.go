package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// mark is the topic of what is published after a message that may not be delivered.
// A broker sends to each client in order, so that whoever has the mark would have
// that message, too, however slow the broker is.
func (t *trial) mark() string { return t.topic + "/mark" }

// until publishes the mark, waits until n of them have come, and returns how many
// other messages there are, of at most most.
func (t *trial) until(ctx context.Context, in *inbox, n, most int) (int, error) {
	const poll = 2 * time.Millisecond
	if err := t.publish(ctx, t.mark(), []byte("mark")); err != nil {
		return 0, err
	}
	for end := time.Now().Add(t.d.Within.step); ; {
		in.mu.Lock()
		marks := in.marks
		in.mu.Unlock()
		if marks >= n {
			return in.settle(ctx, most, t.d.Within.quiet), ctx.Err()
		}
		if time.Now().After(end) {
			return 0, fmt.Errorf("what was published on %s did not come within %v", t.mark(), t.d.Within.step)
		}
		if err := sleep(ctx, poll); err != nil {
			return 0, err
		}
	}
}

// finds reports whether a new subscription to filter is sent the retained message
// of the trial.
func (t *trial) finds(ctx context.Context, filter string) (bool, error) {
	in := &inbox{quiet: t.d.Within.quiet, mark: t.mark()}
	reader, err := t.connect(ctx, "", true, in)
	if err != nil {
		return false, err
	}
	defer reader.Close()
	for _, f := range []string{t.mark(), filter} {
		if _, err := t.subscribe(ctx, reader, f, 1); err != nil {
			return false, err
		}
	}
	n, err := t.until(ctx, in, 1, 1)
	return n > 0, err
}

// wantsRetained says which streams take retained messages by a wildcard; "" if none.
func (t *trial) wantsRetained() string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(t.cfg.Streams)) {
		s := t.cfg.Streams[name]
		if s.AllowRetained && slices.ContainsFunc(s.Topics, func(f string) bool { return strings.ContainsAny(f, "+#") }) {
			names = append(names, name)
		}
	}
	if names == nil {
		return ""
	}
	return "; allow_retained has no effect on stream " + strings.Join(names, ", ")
}

// shared tries whether a message to a shared subscription reaches one of its
// members: brokers that do not know them grant them as ordinary topics.
func (t *trial) shared(ctx context.Context) error {
	const name, members, turns = "shared subscriptions", 2, 6
	filter := "$share" + t.topic[strings.LastIndex(t.topic, "/"):] + "/" + t.topic + "/shared/+"
	in := &inbox{quiet: t.d.Within.quiet, mark: t.mark()}
	for range members {
		c, err := t.connect(ctx, "", true, in)
		if err != nil {
			return err
		}
		defer c.Close()
		granted, err := t.subscribe(ctx, c, filter, 1)
		if err != nil {
			if ctx.Err() == nil {
				t.unshared(name, "the broker ends the connection over them", nil)
				return nil
			}
			return err
		}
		if !granted {
			t.unshared(name, "the broker refuses them", nil)
			return nil
		}
		if _, err := t.subscribe(ctx, c, t.mark(), 1); err != nil {
			return err
		}
	}
	for i := range turns {
		if err := t.publish(ctx, fmt.Sprintf("%s/shared/%d", t.topic, i), []byte("shared")); err != nil {
			return err
		}
	}
	n, err := t.until(ctx, in, members, members*turns)
	if err != nil {
		return err
	}
	figure := map[string]int{"sent": turns, "delivered": n, "members": members}
	switch {
	case n == turns:
		t.d.add(name, OK, "each message goes to one of the members", "", figure)
	case n == 0:
		t.unshared(name, "the broker grants them and delivers nothing", figure)
	default:
		t.unshared(name, fmt.Sprintf("of %d messages %d members were sent %d together", turns, members, n), figure)
	}
	return nil
}

// unshared reports that shared subscriptions do not work, which is a failure where
// the configuration has one.
func (t *trial) unshared(name, what string, figure any) {
	filters := slices.DeleteFunc(t.filters(), func(f string) bool { return !strings.HasPrefix(f, sharePrefix) })
	if len(filters) == 0 {
		t.d.add(name, OK, what+"; the configuration has none", "", figure)
		return
	}
	_, plain, _ := strings.Cut(strings.TrimPrefix(filters[0], sharePrefix), "/")
	t.d.add(name, Fail, what+"; the configuration has "+strings.Join(filters, ", "),
		"subscribe without $share ("+plain+"), and give each node topics of its own, or it is sent what all of them are; or use a broker that delivers them, such as mosquitto", figure)
}
