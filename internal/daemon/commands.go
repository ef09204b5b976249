package daemon

import (
	"context"
	"fmt"

	"edge/internal/terminal"
	"edge/online"
	"edge/stream"
)

// commands returns the daemon's side of the commands that arrive on the request
// topics.
func (d *Daemon) commands() stream.Program {
	p := stream.Program{
		Reload: func(ctx context.Context) error {
			if m := d.recovering(); m != nil { // it may take longer than the client waits
				return fmt.Errorf("model %s: %w", m.Name, online.ErrRecovering)
			}
			_, err := d.Reload(ctx)
			return err
		},
		Checkpoint: func(ctx context.Context, model string) error { return d.current().Model(model).Loop.Checkpoint(ctx) },
		Export: func(ctx context.Context, model, name string) (map[string]any, error) {
			m := d.current().Model(model)
			_, state, err := m.Loop.State(ctx)
			if err != nil {
				return nil, err
			}
			return d.exports.write(model, name, m.Config.Shape(), state)
		},
		Earlier: func(_ context.Context, model, name string) (*stream.Earlier, error) {
			state, err := d.exports.read(model, name)
			if err != nil {
				return nil, err
			}
			cfg := d.current().Model(model).Config
			learner, err := online.Restore(cfg, state)
			if err != nil {
				return nil, err
			}
			post := learner.Posterior()
			return &stream.Earlier{
				State: state, About: map[string]any{"samples": post.Version() + uint64(learner.Pending()), "classes": post.Classes()},
				Classes: online.ClassRecords(cfg, []online.Record{{Event: online.Event{Kind: online.Replace, State: state}}}),
			}, nil
		},
	}
	if level, ok := d.log.Handler().(terminal.AdjustableHandler); ok {
		p.LogLevel = level.Set
	}
	return p
}
