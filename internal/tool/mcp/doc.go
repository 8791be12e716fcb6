// Package mcp is a client of the Model Context Protocol
// (https://modelcontextprotocol.io): it lets a model use what other programs offer.
//
// A [Server] is one entry of mcp.json: a program that is started (type stdio), or an
// address on the network (http and sse). A [File] is the content of mcp.json;
// [File.Select] returns the servers that a setting means. A connection is an initialized
// session with a server. A [Pool] keeps the connections of a process: conversations that
// need the same server with the same settings share one, and idle connections are kept
// for a while. A [Scope] is the servers of one conversation. It offers their tools, and
// gets a connection from the pool when the first tool of a server is called.
//
// # What a model sees of a server
//
// A server may have hundreds of tools, each with a long schema. So by default a model gets
// three functions for each server: search for tools by keywords, describe one, invoke one.
// They are declared without asking the server, which is started only when one of them is
// called. With "expose": "direct" the tools themselves are declared, so the server is
// started as soon as the tools are needed.
//
// # Servers are not trusted
//
// A server may hang, crash, print other text than messages, send endless messages, or
// describe itself wrongly. Every exchange has a time limit, every message a size limit,
// and every list a maximum length. A broken connection is dead: its program is killed
// with everything it started, waiting calls return an error with a text for the model,
// and the next use makes a new connection. Schemas that no provider would accept are
// replaced.
//
// # Secrets
//
// A {{NAME}} in mcp.json means the secret of that name. It is looked up just
// before a connection to the server is made, and never appears in an error.
package mcp
