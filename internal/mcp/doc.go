// Package mcp is a client of the Model Context Protocol
// (https://modelcontextprotocol.io): it lets a model use what other programs offer.
//
// A [Server] is one entry of mcp.json: a program that is started (type stdio), or a place
// on the network (http and sse). A [File] is what the file says, [File.Select] which
// servers a setting means. A connection is a session with a server, over which it was
// initialized. A [Pool] keeps the connections of a process: those that are in use are
// shared by everyone who needs the same server with the same settings, those that nobody
// uses are kept for a while. A [Scope] is the servers of one conversation. It makes tools
// of them, and gets a connection from the pool when the first of them is called.
//
// # What a model sees of a server
//
// A server may have hundreds of tools, each with a long schema. So by default a model gets
// three functions for each server, whatever it offers: search for tools in words, describe
// one, invoke one. They are declared without asking the server, which is started only when
// one of them is called. With "expose": "direct" the tools themselves are declared; to
// learn what they are, the server is started as soon as the tools are asked for.
//
// # Servers are not trusted
//
// A server may hang, crash, print what is no message, send messages that never end, or
// describe itself wrongly. Every exchange has a time limit, every message a size limit,
// and a list a length. A connection on which something went wrong for good is dead: its
// program is killed with everything it started, whoever waits for an answer gets an error
// that is worded for the model, and the next use makes a new connection. Schemas that no
// provider would take are replaced.
//
// # Secrets
//
// A {{NAME}} in mcp.json stands for the secret of that name. It is looked up when a
// connection to that server is about to be made, and never appears in an error.
package mcp
