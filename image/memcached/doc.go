// Package memcached is the cache of that name as a [kit.Program], with the image that people write
// into manifests as "memcached".
//
// It speaks the text protocol, classic and meta commands, in the original's words; what it answers
// was compared with a real one (see testdata). Memory is divided as the original divides it: slab
// classes, pages of a megabyte, and a list of items per class whose least recently used one is
// evicted when -m is reached. What has been touched is stated to the container's memory and stays.
//
//	registry.Register(memcached.Image(tools))
//
// Nothing is stored on disk: a restart empties the cache, as it should.
package memcached
