package memstore

// Again returns another store over the same data, which has no sessions open.
func (st *Store) Again() *Store { return newStore(st.options, st.data) }
