// Package memory keeps facts that models and users want to have in later conversations.
//
// A fact is a Markdown file of the user's configuration directory, below user, workspaces/NAME or agents/NAME: the three scopes. What a
// model writes is a proposal, in the directory proposed beside the facts, until the user accepts it, unless the settings let models
// write. A proposal is never recalled.
//
// [Store] reads and writes facts, [Store.Recall] finds the ones that belong to a question, and [Tools] lets models use them.
package memory
