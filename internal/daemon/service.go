package daemon

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"edge/internal/web"
)

// statusEvery is the interval of the status line for a service manager without a
// watchdog.
const statusEvery = time.Minute

// service notifies a service manager (systemd) of the daemon's state. Without a
// service manager it does nothing.
type service struct {
	watchdog time.Duration // longest interval between two watchdog messages; 0: no watchdog
	log      *slog.Logger
	send     func(state string) // to the service manager
}

// newService returns the service of the service manager that the environment
// names.
func newService(log *slog.Logger) *service {
	s := &service{log: log}
	var err error
	if s.watchdog, err = daemon.SdWatchdogEnabled(false); err != nil {
		log.Warn("the service manager's watchdog is not fed", "error", err)
	}
	s.send = func(state string) {
		if _, err := daemon.SdNotify(false, state); err != nil {
			log.Debug("the service manager was not notified", "state", state, "error", err)
		}
	}
	return s
}

// run sends READY, then feeds the watchdog for as long as the loop of every model
// gives signs of life, until the daemon has stopped. Once ctx ends it sends
// STOPPING.
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

// reloading sends RELOADING; the function that it returns sends READY.
func (s *service) reloading() (done func()) {
	s.send(daemon.SdNotifyReloading + "\n" + daemon.SdNotifyMonotonicUsec())
	return func() { s.send(daemon.SdNotifyReady) }
}

// stuckLoops lists the names of the models whose check fails.
func stuckLoops(checks []web.Check) string {
	var names []string
	for _, c := range checks {
		if !c.OK {
			names = append(names, strings.TrimPrefix(c.Name, "model "))
		}
	}
	return strings.Join(names, ", ")
}
