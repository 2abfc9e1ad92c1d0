// The BSON types that JavaScript does not have. The host tells them by _bsontype.
'use strict';

class ObjectId {
  constructor(hex) {
    if (hex !== undefined && !/^[0-9a-fA-F]{24}$/.test(String(hex))) {
      throw new Error('Argument passed in must be a string of 12 bytes or a string of 24 hex characters or an integer');
    }
    this.hex = hex === undefined ? _host.oid() : String(hex).toLowerCase();
  }
  get str() { return this.hex; }
  toString() { return this.hex; }
  valueOf() { return this.hex; }
  toHexString() { return this.hex; }
  equals(other) { return String(other) === this.hex; }
  getTimestamp() { return new Date(parseInt(this.hex.substring(0, 8), 16) * 1000); }
}

class Long {
  constructor(value) { this.value = String(value === undefined ? 0 : value); }
  toNumber() { return Number(this.value); }
  valueOf() { return Number(this.value); }
  toString() { return this.value; }
}

class Int32 {
  constructor(value) { this.value = Number(value === undefined ? 0 : value) | 0; }
  valueOf() { return this.value; }
  toString() { return String(this.value); }
}

class Double {
  constructor(value) { this.value = Number(value); }
  valueOf() { return this.value; }
  toString() { return String(this.value); }
}

class Decimal128 {
  constructor(value) { this.value = String(value); }
  toString() { return this.value; }
}

class Timestamp {
  constructor(t, i) {
    if (typeof t === 'object' && t !== null) { i = t.i; t = t.t; }
    this.t = Number(t || 0);
    this.i = Number(i || 0);
  }
}

class Binary {
  constructor(subtype, base64) { this.subtype = subtype; this.base64 = base64; }
  hex() { return _host.hex(this.base64); }
  toString() {
    if (this.subtype !== 4) { return this.base64; }
    const h = this.hex();
    return [h.substring(0, 8), h.substring(8, 12), h.substring(12, 16), h.substring(16, 20), h.substring(20)].join('-');
  }
}

class MinKey {}
class MaxKey {}

for (const c of [ObjectId, Long, Int32, Double, Decimal128, Timestamp, Binary, MinKey, MaxKey]) {
  Object.defineProperty(c.prototype, '_bsontype', { value: c.name });
}

// callable lets a type be made with or without new.
function callable(type, make) {
  const f = function (...args) { return make ? make(...args) : new type(...args); };
  f.prototype = type.prototype;
  return f;
}

globalThis.ObjectId = globalThis.ObjectID = callable(ObjectId);
ObjectId.isValid = globalThis.ObjectId.isValid = (s) => /^[0-9a-fA-F]{24}$/.test(String(s));
globalThis.Long = globalThis.NumberLong = callable(Long);
globalThis.Int32 = globalThis.NumberInt = callable(Int32);
globalThis.Double = callable(Double);
globalThis.Decimal128 = globalThis.NumberDecimal = callable(Decimal128);
globalThis.Timestamp = callable(Timestamp);
globalThis.MinKey = callable(MinKey);
globalThis.MaxKey = callable(MaxKey);
globalThis.BinData = callable(Binary);
globalThis.HexData = (subtype, hex) => new Binary(subtype, _host.base64(hex));
globalThis.UUID = (s) => new Binary(4, s === undefined ? _host.uuid() : _host.base64(String(s).replace(/-/g, '')));
globalThis.ISODate = (s) => {
  if (s === undefined) { return new Date(); }
  const d = new Date(/^\d{4}-\d\d-\d\d$/.test(s) || /Z|[+-]\d\d:?\d\d$/.test(s) ? s : s.replace(' ', 'T') + 'Z');
  if (isNaN(d.getTime())) { throw new Error(JSON.stringify(s) + ' is not a valid ISODate'); }
  return d;
};
