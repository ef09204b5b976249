// Package web serves the page, the API, the metrics and the health checks of a
// running daemon over HTTP.
//
//   - Deployment is the daemon under one configuration: node, models and loops.
//   - Monitor keeps the figures beside the deployment's own snapshots: the last
//     samples and events, durations, the course of the scores (course.go), figures of
//     the store (storefigures.go), and the timelines of the devices (timelines.go). The
//     daemon calls its On… methods.
//   - Server routes requests (server.go) behind the checks of guard.go: host names
//     (hosts.go), password (password.go), and bounds of connections, requests and event
//     streams (package bounds).
//   - The API: its schema in api.go and signals.go, filled in describe.go, followed in
//     eventstream.go; POST of a label in label.go; checks in health.go.
//   - The metrics: tables of families in metricfamilies.go, read by metrics.go and
//     written in the text format of Prometheus by exposition.go.
//   - The page: page.html, page.css and page.js, joined by page.go. It loads nothing
//     from other servers.
package web
