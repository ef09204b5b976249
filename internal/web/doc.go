// Package web serves a daemon over HTTP: the page, its API and event stream, the
// metrics and the health checks.
//
// Monitor remembers recent samples, events and scores, from the hooks that the
// daemon connects to the node; Server serves them. Deployment is the view of the
// daemon that both have: configuration, node and models.
//
// Requests pass places.go (connections), guard.go (Host, password, turns) and then
// the handlers: page.go, api.go, metrics.go, health.go.
package web
