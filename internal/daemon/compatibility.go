package daemon

import (
	"fmt"
	"slices"
	"strings"

	"edge/internal/config"
	"edge/online"
	"edge/stream/field"
)

// startOnly are the keys that are read at the start alone, each with the reason
// and the way out.
var startOnly = [...]struct{ key, reason string }{
	{"store.path", "the learnt state is in the old file: stop the daemon, move the file, start it again"},
	{"store.dedupe", "the messages that are remembered are counted from the start: start the daemon again"},
	{"memory_limit", "it is compared with the system's limit at the start: start the daemon again"},
	{"log.format", "it is chosen at the start: start the daemon again"},
}

// refusal returns why a daemon cannot change from one deployment to the other
// while it keeps the learnt state: each key and the way out. Nil: it can. was and is are
// their settings.
func refusal(old, next *deployment, was, is config.Settings, changed []string) error {
	var errs []error
	for _, only := range startOnly {
		if slices.Contains(changed, only.key) {
			errs = append(errs, fmt.Errorf("%s: %q cannot become %q while the daemon runs: %s", only.key, was[only.key], is[only.key], only.reason))
		}
	}
	for _, m := range old.Models {
		if _, stays := next.Config.Models[m.Name]; !stays {
			continue
		}
		to, err := next.Config.Learner(m.Name)
		if err != nil {
			return err
		}
		errs = append(errs, field.Within("models."+m.Name, incompatible(&m.Config, &to, m.Loop.Posterior().Classes())))
	}
	return field.Join(errs...)
}

// incompatible returns why a state learnt under one configuration, with these
// classes, has another meaning under the other: each key that differs.
func incompatible(from, to *online.Config, classes []string) error {
	var errs []error
	for _, v := range []struct {
		key      string
		from, to any
	}{
		{"features", strings.Join(from.Features, ","), strings.Join(to.Features, ",")},
		{"inducing", from.Inducing, to.Inducing},
		{"horizons", fmt.Sprint(from.Horizons), fmt.Sprint(to.Horizons)},
		{"window", from.Window, to.Window},
		{"kernel", from.Kernel, to.Kernel},
	} {
		if v.from != v.to {
			errs = append(errs, fmt.Errorf("%s: the learnt state has %v, which cannot become %v: restore the key, or give the model another name; or stop the daemon and discard the state with `edge reset`", v.key, v.from, v.to))
		}
	}
	if len(errs) == 0 && from.Shape() != to.Shape() {
		errs = append(errs, fmt.Errorf("streams: %s: restore them, or give the model another name; or stop the daemon and discard the state with `edge reset`", online.ShapeChange(from.Shape(), to.Shape())))
	}
	last := -1
	for _, name := range from.Classes.Names {
		at := slices.Index(to.Classes.Names, name)
		switch {
		case at < 0 && slices.Contains(classes, name):
			errs = append(errs, fmt.Errorf("classes.names: %q is a class that the model has: request class_remove or class_rename first, or put it back", name))
		case at >= 0 && at < last:
			errs = append(errs, fmt.Errorf("classes.names: %q has another place: the model has learnt the classes in the old order; new names go to the end", name))
		}
		last = max(last, at)
	}
	if len(classes) > to.Classes.Max && to.Classes.Max < from.Classes.Max {
		errs = append(errs, fmt.Errorf("classes.max: the model has %d classes, which are more than %d", len(classes), to.Classes.Max))
	}
	return field.Join(errs...)
}
