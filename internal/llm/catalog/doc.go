// Package catalog knows the models that can be asked for.
//
// A client is one configured connection to a maker of models, a model is one of the
// things it offers: for chat, for embeddings or for reranking. A model id is
// "client:model". A [Catalog] holds the clients in the order of the configuration
// and finds the model that an id means. Prices and limits are what the
// configuration or a list of known models says; nothing here talks to a provider.
//
// The client [Builtin] is always there: its models are part of the program and work
// without network and key.
package catalog
