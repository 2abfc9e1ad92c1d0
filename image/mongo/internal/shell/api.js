// The shell's objects: connections, databases, collections and cursors.
'use strict';

class MongoServerError extends Error {
  constructor(reply) {
    super(reply.errmsg);
    this.name = 'MongoServerError';
    this.code = reply.code;
    this.codeName = reply.codeName;
    this.errorResponse = reply;
  }
}
globalThis.MongoServerError = MongoServerError;

function usage(msg) {
  const e = new Error(msg);
  e.name = 'MongoshInvalidInputError';
  return e;
}

// prefixed lets a server's error say what was being done, as the shell of old does.
function prefixed(what, f) {
  try { return f(); } catch (e) {
    if (_host.legacy && e instanceof MongoServerError) { e.message = what + e.message; }
    throw e;
  }
}

class Mongo {
  constructor(uri) { this._id = uri === undefined ? 0 : _host.connect(String(uri)); }
  getDB(name) { return openDB(this, name); }
  adminCommand(cmd) { return this.getDB('admin').runCommand(cmd); }
  getDBs() { return this.getDB('admin')._must({ listDatabases: 1 }); }
  getDBNames() { return this.getDBs().databases.map((d) => d.name); }
  setReadPref() {}
  setSecondaryOk() {}
  setSlaveOk() {}
  startSession() { throw new MongoServerError({ errmsg: 'sessions with transactions need a replica set', code: 20, codeName: 'IllegalOperation' }); }
  [_show]() { return 'connection to ' + _host.address(this._id); }
}

class DB {
  constructor(mongo, name) { this._mongo = mongo; this._name = name; }
  getName() { return this._name; }
  getMongo() { return this._mongo; }
  getSiblingDB(name) { return openDB(this._mongo, name); }
  getSisterDB(name) { return this.getSiblingDB(name); }
  getCollection(name) { return openCollection(this, name); }
  toString() { return this._name; }
  [_show]() { return this._name; }

  // runCommand returns the reply; the shell of old returns that of a failure, too.
  runCommand(cmd) {
    if (typeof cmd === 'string') { cmd = { [cmd]: 1 }; }
    const reply = _host.run(this._mongo._id, this._name, cmd);
    if (!reply.ok && !_host.legacy) { throw new MongoServerError(reply); }
    return reply;
  }
  _must(cmd) {
    const reply = _host.run(this._mongo._id, this._name, cmd);
    if (!reply.ok) { throw new MongoServerError(reply); }
    return reply;
  }
  adminCommand(cmd) { return this.getSiblingDB('admin').runCommand(cmd); }

  getCollectionNames() {
    return new Cursor(this, '$cmd', this._must({ listCollections: 1, nameOnly: true, authorizedCollections: true }))
      .map((c) => c.name).toArray().sort();
  }
  getCollectionInfos(filter) { return new Cursor(this, '$cmd', this._must({ listCollections: 1, filter: filter || {} })).toArray(); }
  createCollection(name, options) { return this._must({ create: name, ...options }); }
  dropDatabase() { return this._must({ dropDatabase: 1 }); }

  auth(user, pwd) {
    let mechanism;
    if (typeof user === 'object' && user !== null) { ({ user, pwd, mechanism } = user); }
    try {
      _host.auth(this._mongo._id, this._name, String(user), String(pwd), mechanism || '');
    } catch (e) {
      if (!_host.legacy) { throw e; }
      print('Error: ' + e.message);
      return 0;
    }
    return _host.legacy ? 1 : { ok: 1 };
  }
  logout() { return this._must({ logout: 1 }); }
  createUser(user) {
    const { user: name, ...rest } = user || {};
    if (name === undefined) { throw usage('Missing required property: "user"'); }
    const reply = prefixed("couldn't add user: ", () => this._must({ createUser: name, ...rest }));
    if (_host.legacy) {
      const { pwd, ...visible } = user;
      print('Successfully added user: ' + tojson(visible));
      return undefined;
    }
    return reply;
  }
  addUser(user) { return this.createUser(user); }
  updateUser(name, update) { return done(prefixed('Updating user failed: ', () => this._must({ updateUser: name, ...update }))); }
  changeUserPassword(name, pwd) { return done(prefixed('Updating user failed: ', () => this._must({ updateUser: name, pwd }))); }
  dropUser(name) {
    if (!_host.legacy) { return this._must({ dropUser: name }); }
    const reply = this.runCommand({ dropUser: name });
    if (reply.ok) { return true; }
    if (reply.code === 11) { return false; }
    throw new MongoServerError(reply);
  }
  removeUser(name) { return this.dropUser(name); }
  dropAllUsers() { return this._must({ dropAllUsersFromDatabase: 1 }); }
  grantRolesToUser(name, roles) { return done(this._must({ grantRolesToUser: name, roles: list(roles) })); }
  revokeRolesFromUser(name, roles) { return done(this._must({ revokeRolesFromUser: name, roles: list(roles) })); }
  getUser(name, options) { return this._must({ usersInfo: name, ...options }).users[0] || null; }
  getUsers(options) {
    const reply = this._must({ usersInfo: 1, ...options });
    return _host.legacy ? reply.users : reply;
  }
  createRole(role) {
    const { role: name, ...rest } = role;
    return this._must({ createRole: name, ...rest });
  }
  updateRole(name, update) { return this._must({ updateRole: name, ...update }); }
  dropRole(name) { return this._must({ dropRole: name }); }
  grantRolesToRole(name, roles) { return this._must({ grantRolesToRole: name, roles: list(roles) }); }
  revokeRolesFromRole(name, roles) { return this._must({ revokeRolesFromRole: name, roles: list(roles) }); }
  grantPrivilegesToRole(name, privileges) { return this._must({ grantPrivilegesToRole: name, privileges }); }
  revokePrivilegesFromRole(name, privileges) { return this._must({ revokePrivilegesFromRole: name, privileges }); }
  getRole(name, options) { return this._must({ rolesInfo: name, ...options }).roles[0] || null; }
  getRoles(options) {
    const reply = this._must({ rolesInfo: 1, ...options });
    return _host.legacy ? reply.roles : reply;
  }

  stats(scale) { return this._must({ dbStats: 1, scale: typeof scale === 'object' && scale !== null ? scale.scale || 1 : scale || 1 }); }
  serverStatus(options) { return this.getSiblingDB('admin')._must({ serverStatus: 1, ...options }); }
  serverBuildInfo() { return this._must({ buildInfo: 1 }); }
  serverCmdLineOpts() { return this.getSiblingDB('admin')._must({ getCmdLineOpts: 1 }); }
  hostInfo() { return this.getSiblingDB('admin')._must({ hostInfo: 1 }); }
  hello() { return this._must({ hello: 1 }); }
  isMaster() { return this._must({ isMaster: 1 }); }
  version() { return this._must({ buildInfo: 1 }).version; }
  currentOp(all) {
    const filter = typeof all === 'object' && all !== null ? all : all ? { $all: true } : {};
    return this.getSiblingDB('admin')._must({ currentOp: 1, ...filter });
  }
  getLogComponents() { return this.getSiblingDB('admin')._must({ getParameter: 1, logLevel: 1 }); }
  shutdownServer(options) { return this.getSiblingDB('admin')._must({ shutdown: 1, ...options }); }
  fsyncLock() { return this.getSiblingDB('admin')._must({ fsync: 1 }); }
  aggregate(pipeline, options) { return new Cursor(this, '$cmd.aggregate', this._must({ aggregate: 1, pipeline, cursor: {}, ...options })); }
  printCollectionStats() { for (const c of this.getCollectionNames()) { print(c); printjson(this.getCollection(c).stats()); } }
  getReplicationInfo() { throw new MongoServerError({ errmsg: 'not running with --replSet', code: 76, codeName: 'NoReplicationEnabled' }); }
}

// done is the result of commands that the shell of old answers with nothing.
function done(reply) { return _host.legacy ? undefined : reply; }

function list(v) { return Array.isArray(v) ? v : [v]; }

function openDB(mongo, name) {
  if (!name || /[/\\. "$\0]/.test(name)) { throw usage('Invalid database name: ' + name); }
  return new Proxy(new DB(mongo, name), { get: members });
}

// members lets collections be read as properties.
function members(target, key) {
  if (key in target || typeof key !== 'string') { return target[key]; }
  return target.getCollection(key);
}

function openCollection(db, name) {
  if (!name) { throw usage('Invalid collection name: ' + name); }
  return new Proxy(new Collection(db, name), { get: members });
}

class Collection {
  constructor(db, name) { this._db = db; this._name = name; }
  getName() { return this._name; }
  getDB() { return this._db; }
  getMongo() { return this._db.getMongo(); }
  getFullName() { return this._db.getName() + '.' + this._name; }
  getCollection(name) { return openCollection(this._db, this._name + '.' + name); }
  toString() { return this.getFullName(); }
  [_show]() { return this.getFullName(); }
  _must(cmd) { return this._db._must(cmd); }

  find(filter, projection, options) { return new Cursor(this._db, this._name, null, { filter: filter || {}, projection, ...options }); }
  findOne(filter, projection, options) {
    const docs = this.find(byID(filter), projection, options).limit(1).toArray();
    return docs.length ? docs[0] : null;
  }
  aggregate(pipeline, ...more) {
    let options = more[0];
    if (!Array.isArray(pipeline)) { pipeline = pipeline === undefined ? [] : [pipeline, ...more]; options = {}; }
    const { explain, ...rest } = options || {};
    if (explain) { return this._must({ explain: { aggregate: this._name, pipeline, cursor: {} } }); }
    return new Cursor(this._db, this._name, this._must({ aggregate: this._name, pipeline, cursor: {}, ...rest }));
  }
  countDocuments(filter, options) {
    const pipeline = [{ $match: filter || {} }];
    if (options && options.skip) { pipeline.push({ $skip: options.skip }); }
    if (options && options.limit) { pipeline.push({ $limit: options.limit }); }
    pipeline.push({ $group: { _id: 1, n: { $sum: 1 } } });
    const docs = this.aggregate(pipeline).toArray();
    return docs.length ? docs[0].n : 0;
  }
  count(filter) { return this._must({ count: this._name, query: filter || {} }).n; }
  estimatedDocumentCount() { return this._must({ count: this._name }).n; }
  distinct(key, query) { return this._must({ distinct: this._name, key, query: query || {} }).values; }

  _write(cmd, options) {
    const reply = this._must({ ...cmd, ...pick(options, 'writeConcern', 'ordered') });
    if (reply.writeErrors && reply.writeErrors.length) { throw writeError(reply); }
    return reply;
  }
  insertOne(doc, options) {
    const d = withID(doc);
    this._write({ insert: this._name, documents: [d] }, options);
    return { acknowledged: true, insertedId: d._id };
  }
  insertMany(docs, options) {
    const all = docs.map(withID);
    this._write({ insert: this._name, documents: all }, options);
    return { acknowledged: true, insertedIds: _host.legacy ? all.map((d) => d._id) : Object.fromEntries(all.map((d, i) => [i, d._id])) };
  }
  insert(docs, options) {
    const all = list(docs);
    const reply = this.insertMany(all, options);
    if (!_host.legacy) { return reply; }
    if (!Array.isArray(docs)) { return raw('WriteResult({ "nInserted" : 1 })', { nInserted: 1 }); }
    return raw('BulkWriteResult({\n\t"writeErrors" : [ ],\n\t"writeConcernErrors" : [ ],\n\t"nInserted" : ' + all.length + ',\n\t"nUpserted" : 0,\n\t"nMatched" : 0,\n\t"nModified" : 0,\n\t"nRemoved" : 0,\n\t"upserted" : [ ]\n})', { nInserted: all.length });
  }
  save(doc) {
    if (doc._id === undefined) { return this.insert(doc); }
    return this.replaceOne({ _id: doc._id }, doc, { upsert: true });
  }
  _update(q, u, multi, options) {
    const reply = this._write({ update: this._name, updates: [{ q, u, multi, ...pick(options, 'upsert', 'arrayFilters', 'collation', 'hint') }] }, options);
    const upserted = reply.upserted && reply.upserted.length ? reply.upserted[0]._id : null;
    const result = { acknowledged: true, insertedId: upserted, matchedCount: reply.n - (upserted === null ? 0 : 1), modifiedCount: reply.nModified, upsertedCount: upserted === null ? 0 : 1 };
    if (!_host.legacy) { return result; }
    const { insertedId, upsertedCount, ...rest } = result;
    return upserted === null ? rest : { ...rest, upsertedId: upserted };
  }
  updateOne(q, u, options) { operators(u); return this._update(q, u, false, options); }
  updateMany(q, u, options) { operators(u); return this._update(q, u, true, options); }
  replaceOne(q, u, options) { return this._update(q, u, false, options); }
  update(q, u, options, multi) {
    if (typeof options === 'boolean') { options = { upsert: options, multi: !!multi }; }
    const reply = this._update(q, u, !!(options && options.multi), options);
    if (!_host.legacy) { return reply; }
    const counts = { nMatched: reply.matchedCount, nUpserted: reply.upsertedId === undefined ? 0 : 1, nModified: reply.modifiedCount };
    if (reply.upsertedId !== undefined) { counts._id = reply.upsertedId; }
    return raw('WriteResult(' + tojson(counts) + ')', counts);
  }
  _delete(q, limit, options) {
    const reply = this._write({ delete: this._name, deletes: [{ q: q || {}, limit, ...pick(options, 'collation', 'hint') }] }, options);
    return { acknowledged: true, deletedCount: reply.n };
  }
  deleteOne(q, options) { needFilter(q); return this._delete(q, 1, options); }
  deleteMany(q, options) { needFilter(q); return this._delete(q, 0, options); }
  remove(q, options) {
    needFilter(q);
    const one = options === true || !!(options && options.justOne);
    const reply = this._delete(q, one ? 1 : 0);
    return _host.legacy ? raw('WriteResult({ "nRemoved" : ' + reply.deletedCount + ' })', { nRemoved: reply.deletedCount }) : reply;
  }
  _modify(query, more, options) {
    const { projection, sort, upsert, returnNewDocument, returnDocument, arrayFilters } = options || {};
    const cmd = { findAndModify: this._name, query: query || {}, ...more };
    if (projection) { cmd.fields = projection; }
    if (sort) { cmd.sort = sort; }
    if (upsert) { cmd.upsert = true; }
    if (arrayFilters) { cmd.arrayFilters = arrayFilters; }
    if (!more.remove && (returnNewDocument || returnDocument === 'after')) { cmd.new = true; }
    return this._must(cmd).value;
  }
  findOneAndUpdate(q, update, options) { operators(update); return this._modify(q, { update }, options); }
  findOneAndReplace(q, update, options) { return this._modify(q, { update }, options); }
  findOneAndDelete(q, options) { return this._modify(q, { remove: true }, options); }
  findAndModify(options) { return this._must({ findAndModify: this._name, ...options }).value; }
  bulkWrite(ops) {
    const result = { acknowledged: true, insertedCount: 0, matchedCount: 0, modifiedCount: 0, deletedCount: 0, upsertedCount: 0 };
    for (const op of ops) {
      const [name] = Object.keys(op), a = op[name];
      if (name === 'insertOne') { this.insertOne(a.document); result.insertedCount++; continue; }
      if (name === 'deleteOne' || name === 'deleteMany') { result.deletedCount += this[name](a.filter).deletedCount; continue; }
      const r = this[name](a.filter, name === 'replaceOne' ? a.replacement : a.update, a);
      result.matchedCount += r.matchedCount;
      result.modifiedCount += r.modifiedCount;
      result.upsertedCount += r.upsertedCount || 0;
    }
    return result;
  }

  createIndex(key, options) { return this.createIndexes([key], options); }
  ensureIndex(key, options) { return this.createIndex(key, options); }
  createIndexes(keys, options) {
    const specs = keys.map((key) => ({ key, name: Object.keys(key).map((k) => k + '_' + key[k]).join('_'), ...options }));
    const reply = this._must({ createIndexes: this._name, indexes: specs });
    if (_host.legacy) { return reply; }
    return specs.length === 1 ? specs[0].name : specs.map((s) => s.name);
  }
  getIndexes() {
    try {
      return new Cursor(this._db, this._name, this._must({ listIndexes: this._name })).toArray();
    } catch (e) {
      if (_host.legacy && e.code === 26) { return []; }
      throw e;
    }
  }
  getIndexKeys() { return this.getIndexes().map((x) => x.key); }
  dropIndex(index) { return this._must({ dropIndexes: this._name, index }); }
  dropIndexes(index) { return this._must({ dropIndexes: this._name, index: index === undefined ? '*' : index }); }
  drop() {
    try { this._must({ drop: this._name }); } catch (e) {
      if (e.code === 26) { return !_host.legacy; }
      throw e;
    }
    return true;
  }
  renameCollection(to, dropTarget) {
    return this._db.getSiblingDB('admin')._must({ renameCollection: this.getFullName(), to: this._db.getName() + '.' + to, dropTarget: !!dropTarget });
  }
  stats(scale) { return this._must({ collStats: this._name, scale: typeof scale === 'number' ? scale : 1 }); }
  dataSize() { return this.stats().size; }
  storageSize() { return this.stats().storageSize; }
  totalIndexSize() { return this.stats().totalIndexSize; }
  totalSize() { return this.stats().totalSize; }
  isCapped() { return !!this.stats().capped; }
  validate(options) { return this._must({ validate: this._name, ...options }); }
  explain(verbosity) {
    const run = (cmd) => this._must({ explain: cmd, verbosity: verbosity || 'queryPlanner' });
    return {
      find: (filter) => run({ find: this._name, filter: filter || {} }),
      count: (query) => run({ count: this._name, query: query || {} }),
      aggregate: (pipeline) => run({ aggregate: this._name, pipeline, cursor: {} }),
    };
  }
}

// raw is a result that is shown as a text.
function raw(text, fields) {
  Object.defineProperty(fields, _show, { value: () => text });
  return fields;
}

function pick(from, ...names) {
  const to = {};
  for (const n of names) { if (from && from[n] !== undefined) { to[n] = from[n]; } }
  return to;
}

function withID(doc) { return doc._id === undefined ? { _id: new ObjectId(), ...doc } : doc; }

function byID(filter) { return filter && filter._bsontype ? { _id: filter } : filter; }

function needFilter(q) {
  if (q === undefined) { throw usage('Missing required argument at position 0'); }
}

function operators(u) {
  if (!Array.isArray(u) && !Object.keys(u || {})[0]?.startsWith('$')) {
    throw new Error(_host.legacy ? 'the update operation document must contain atomic operators.' : 'Update document requires atomic operators');
  }
}

function writeError(reply) {
  const first = reply.writeErrors[0];
  const e = new MongoServerError({ errmsg: first.errmsg, code: first.code, codeName: 'DuplicateKey' });
  e.writeErrors = reply.writeErrors;
  if (reply.writeErrors.length > 1) { e.name = 'MongoBulkWriteError'; }
  return e;
}

class Cursor {
  constructor(db, coll, reply, spec) {
    this._db = db;
    this._coll = coll;
    this._spec = spec;
    this._buffer = [];
    this._maps = [];
    if (reply) { this._take(reply.cursor, reply.cursor.firstBatch); }
  }
  _take(cursor, batch) {
    this._started = true;
    this._id = cursor.id;
    this._ns = cursor.ns;
    this._buffer = batch.slice();
  }
  _option(name, value) {
    if (this._started) { throw new Error('query already executed'); }
    this._spec[name] = value;
    return this;
  }
  sort(v) { return this._option('sort', v); }
  limit(v) { return this._option(v < 0 ? 'limit' : 'limit', Math.abs(v)); }
  skip(v) { return this._option('skip', v); }
  projection(v) { return this._option('projection', v); }
  project(v) { return this._option('projection', v); }
  batchSize(v) { return this._option('batchSize', v); }
  hint(v) { return this._option('hint', v); }
  comment(v) { return this._option('comment', v); }
  maxTimeMS(v) { return this._option('maxTimeMS', v); }
  collation(v) { return this._option('collation', v); }
  allowDiskUse() { return this; }
  readPref() { return this; }
  readConcern() { return this; }
  noCursorTimeout() { return this; }
  pretty() { this._pretty = true; return this; }
  map(f) { this._maps.push(f); return this; }
  close() {
    if (Number(this._id)) { this._db._must({ killCursors: this._coll, cursors: [this._id] }); this._id = 0; }
    this._buffer = [];
  }
  _open() {
    if (this._started) { return; }
    const cmd = { find: this._coll };
    for (const k of Object.keys(this._spec)) {
      if (this._spec[k] !== undefined) { cmd[k] = this._spec[k]; }
    }
    let reply;
    try { reply = this._db._must(cmd); } catch (e) {
      if (_host.legacy && e instanceof MongoServerError) { e.message = 'error: ' + tojson(e.errorResponse); }
      throw e;
    }
    this._take(reply.cursor, reply.cursor.firstBatch);
  }
  hasNext() {
    this._open();
    while (this._buffer.length === 0 && Number(this._id)) {
      const coll = this._ns.substring(this._ns.indexOf('.') + 1);
      const { cursor } = this._db._must({ getMore: this._id, collection: coll });
      this._take(cursor, cursor.nextBatch);
    }
    return this._buffer.length > 0;
  }
  tryNext() { return this.hasNext() ? this.next() : null; }
  next() {
    if (!this.hasNext()) {
      if (_host.legacy) { throw new Error('error hasNext: false'); }
      return null;
    }
    return this._maps.reduce((v, f) => f(v), this._buffer.shift());
  }
  toArray() {
    const all = [];
    while (this.hasNext()) { all.push(this.next()); }
    return all;
  }
  forEach(f) { while (this.hasNext()) { if (f(this.next()) === false && !_host.legacy) { return; } } }
  *[Symbol.iterator]() { while (this.hasNext()) { yield this.next(); } }
  length() { return this.toArray().length; }
  itcount() { return this.toArray().length; }
  objsLeftInBatch() { return this._buffer.length; }
  isExhausted() { return !this.hasNext(); }
  count() { return this._db._must({ count: this._coll, query: (this._spec || {}).filter || {} }).n; }
  size() {
    const { filter, skip, limit } = this._spec || {};
    return this._db._must({ count: this._coll, query: filter || {}, ...pick({ skip, limit }, 'skip', 'limit') }).n;
  }
  explain(verbosity) {
    const cmd = { find: this._coll, ...pick(this._spec, 'filter', 'sort', 'limit', 'skip', 'projection') };
    return this._db._must({ explain: cmd, verbosity: verbosity || 'queryPlanner' });
  }
  [_show]() {
    const page = 20, docs = [];
    while (docs.length < page && this.hasNext()) { docs.push(this.next()); }
    globalThis._last = this;
    const more = this.hasNext() ? '\nType "it" for more' : '';
    if (_host.legacy) { return docs.map((d) => tojson(d, '', !this._pretty)).join('\n') + more; }
    return (docs.length ? inspect(docs) : '') + more;
  }
}

const rs = {
  status: () => db.adminCommand({ replSetGetStatus: 1 }),
  conf: () => db.adminCommand({ replSetGetConfig: 1 }),
  config: () => rs.conf(),
  isMaster: () => db.isMaster(),
  hello: () => db.hello(),
  initiate: (config) => db.adminCommand({ replSetInitiate: config || {} }),
  slaveOk: () => {},
  secondaryOk: () => {},
};
globalThis.rs = rs;
globalThis.sh = { status: () => { throw new MongoServerError({ errmsg: 'This db does not have sharding enabled. Be sure you are connecting to a mongos from the shell and not to a mongod.', code: 1, codeName: 'InternalError' }); } };
globalThis.Mongo = callable(Mongo);
globalThis.connect = (uri, user, pwd) => {
  const d = new Mongo(uri).getDB(_host.database(String(uri)));
  if (user !== undefined) { d.auth(user, pwd); }
  return d;
};
globalThis.quit = globalThis.exit = (code) => _host.quit(code === undefined ? 0 : Number(code));
globalThis.sleep = (ms) => _host.sleep(Number(ms));
globalThis.load = (file) => { _host.load(String(file)); return true; };
globalThis.cat = (file) => _host.read(String(file));
globalThis.version = () => _host.version;
globalThis.getHostName = globalThis.hostname = () => _host.hostname;
globalThis.pwd = () => _host.dir;
globalThis.passwordPrompt = () => { throw usage('passwordPrompt() needs a terminal; give the password itself'); };
globalThis.assert = (ok, msg) => { if (!ok) { throw new Error('assert failed' + (msg ? ' : ' + msg : '')); } };
globalThis.process = { exit: quit, env: _host.vars, argv: ['mongosh'] };

globalThis.use = (name) => {
  if (db.getName() === name) { return raw((_host.legacy ? 'switched to db ' : 'already on db ') + name, {}); }
  globalThis.db = db.getMongo().getDB(name);
  return raw('switched to db ' + name, {});
};

function size(bytes) {
  const gb = bytes / 1024 / 1024 / 1024;
  if (_host.legacy) { return gb.toFixed(3) + 'GB'; }
  if (bytes >= 1 << 30) { return gb.toFixed(2) + ' GiB'; }
  if (bytes >= 1 << 20) { return (bytes / (1 << 20)).toFixed(2) + ' MiB'; }
  return (bytes / 1024).toFixed(2) + ' KiB';
}

globalThis.show = (what) => {
  switch (what) {
    case 'dbs': case 'databases': {
      const all = db.getMongo().getDBs().databases;
      const width = Math.max(0, ...all.map((d) => d.name.length));
      return raw(all.map((d) => d.name.padEnd(width) + '  ' + size(d.sizeOnDisk).padStart(_host.legacy ? 0 : 10)).join('\n'), {});
    }
    case 'collections': case 'tables':
      return raw(db.getCollectionNames().join('\n'), {});
    case 'users': {
      const users = db._must({ usersInfo: 1 }).users;
      return _host.legacy ? raw(users.map((u) => tojson(u)).join('\n'), {}) : users;
    }
    case 'roles': {
      const roles = db._must({ rolesInfo: 1, showBuiltinRoles: true }).roles;
      return _host.legacy ? raw(roles.map((r) => tojson(r)).join('\n'), {}) : roles;
    }
    case 'log': case 'logs':
      return raw(db.adminCommand({ getLog: 'global' }).log.join('\n'), {});
    case 'profile':
      return raw('db.system.profile is empty. Use db.setProfilingLevel(2) will enable profiling.', {});
  }
  throw usage("'" + what + "' is not a valid argument for \"show\".");
};
globalThis.it = () => globalThis._last === undefined ? raw('no cursor', {}) : globalThis._last;
globalThis.help = () => raw('show dbs, show collections, show users, show roles, use <db>, db.<collection>.find(), db.runCommand(), db.getUsers(), it, exit', {});

// The host shows results with it.
globalThis._shown = shown;
globalThis._start = (name) => { globalThis.db = openDB(new Mongo(), name); };
