// Package bounds limits what the clients of a server may take, in total and for each address:
// connections, requests in progress, and streams.
//
//	Listener  connections; a new one replaces one that is silent
//	Requests  requests in progress; one more is refused
//	Streams   responses without end; a new one replaces the oldest
//
// No client can keep others out, not even others at its own address.
package bounds
