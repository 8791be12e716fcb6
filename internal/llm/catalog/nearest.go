package catalog

import (
	"slices"
	"strings"

	"loki/internal/base/value/yamldoc"
)

// maxNearest is how many ids are proposed at most.
const maxNearest = 3

// nearest returns the ids of type t that id may be a misspelling of, best first:
// whole ids; then, if id has no client, models of that name; and last the same model at
// a client of nearly that name.
func (c *Catalog) nearest(id string, t Type) []string {
	ids := c.IDs(t)
	client, name, qualified := strings.Cut(id, ":")

	near := mostLike(id, ids)
	if !qualified {
		var names []string
		for m := range c.Models(t) {
			names = append(names, m.Name)
		}
		for _, like := range mostLike(id, names) {
			for i, name := range names {
				if name == like {
					near = append(near, ids[i])
				}
			}
		}
	}
	for _, like := range mostLike(client, c.otherClients(client, t)) {
		near = append(near, strings.TrimSuffix(like+":"+name, ":"))
	}
	return firstDistinct(near, maxNearest)
}

// otherClients returns the names of the clients that can have any model of type t,
// listed or not, all but the one called name.
func (c *Catalog) otherClients(name string, t Type) []string {
	var names []string
	for _, cl := range c.clients {
		if cl.Name != name && cl.Type != Builtin && !cl.Implied && t != Embedding {
			names = append(names, cl.Name)
		}
	}
	return names
}

// mostLike returns up to maxNearest of known, nearest first.
func mostLike(name string, known []string) []string {
	var like []string
	for rest := slices.Clone(known); len(like) < maxNearest; {
		k := yamldoc.Nearest(name, rest)
		if k == "" {
			break
		}
		like = append(like, k)
		rest = slices.DeleteFunc(rest, func(r string) bool { return r == k })
	}
	return like
}

func firstDistinct(list []string, n int) []string {
	var distinct []string
	for _, s := range list {
		if len(distinct) < n && !slices.Contains(distinct, s) {
			distinct = append(distinct, s)
		}
	}
	return distinct
}
