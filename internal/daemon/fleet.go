package daemon

import (
	"edge/internal/web"
	"edge/model"
	"edge/online"
	"edge/online/fleet"
	"edge/stream"
)

// followed returns the feed of a model; that of a follower with the function that makes
// its posterior.
func followed(m *web.Model) stream.ModelConfig {
	feed := m.Feed
	if cfg := m.Config; feed.Fleet.Follows() {
		feed.Follow = func(member string, set *fleet.Set) (*model.Posterior, *fleet.Merge, error) {
			return online.Follow(cfg, member, set)
		}
	}
	return feed
}
