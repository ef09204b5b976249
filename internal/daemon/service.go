package daemon

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"edge/internal/web"
)

// statusEvery is how often a service manager without a watchdog hears how the
// daemon is.
const statusEvery = 10 * time.Second

// service is the daemon as a service manager sees it. Without one it does nothing.
type service struct {
	watchdog time.Duration // within which it has to hear of the daemon; 0: it does not watch
	log      *slog.Logger
	send     func(state string) // to the service manager
}

// newService asks the environment which service manager there is.
func newService(log *slog.Logger) *service {
	s := &service{log: log}
	var err error
	if s.watchdog, err = daemon.SdWatchdogEnabled(false); err != nil {
		log.Warn("the service manager's watchdog is not fed", "error", err)
	}
	s.send = func(state string) {
		if _, err := daemon.SdNotify(false, state); err != nil {
			log.Debug("the service manager does not hear", "state", state, "error", err)
		}
	}
	return s
}

// run says that the daemon is ready, then feeds the watchdog for as long as the
// loop of every model gives signs of life, until the daemon has stopped. Once
// ctx ends, the service manager hears that it is stopping.
func (s *service) run(ctx context.Context, stopped <-chan struct{}, m *web.Monitor) {
	s.send(daemon.SdNotifyReady)
	interval, within := statusEvery, web.AliveWithin
	if s.watchdog > 0 {
		interval, within = s.watchdog/4, s.watchdog/2
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	ending := ctx.Done()
	starved, status := false, ""
	for {
		stuck := stuckLoops(m.Alive(within))
		if stuck == "" && s.watchdog > 0 {
			s.send(daemon.SdNotifyWatchdog)
		}
		if stuck != "" && !starved {
			s.log.Error("a loop that learns gives no sign of life; the watchdog is not fed", "model", stuck)
		}
		starved = stuck != ""
		if now := m.Summary(); now != status {
			status = now
			s.send("STATUS=" + status)
		}
		select {
		case <-tick.C:
		case <-ending:
			s.send(daemon.SdNotifyStopping)
			ending = nil
		case <-stopped:
			return
		}
	}
}

// reloading says that the configuration is read again; the function that it
// returns says that this is over.
func (s *service) reloading() (over func()) {
	s.send(daemon.SdNotifyReloading + "\n" + daemon.SdNotifyMonotonicUsec())
	return func() { s.send(daemon.SdNotifyReady) }
}

// stuckLoops names the models whose check fails.
func stuckLoops(checks []web.Check) string {
	var names []string
	for _, c := range checks {
		if !c.OK {
			names = append(names, strings.TrimPrefix(c.Name, "model "))
		}
	}
	return strings.Join(names, ", ")
}
