// As routes.py, which says what they are.
module.exports = [
  ['/', 'root', null],
  ['/pay', 'pay', ['POST']],
  ['/upload', 'upload', ['POST']],
  ['/profile', 'profile', ['GET']],
  ['/item', 'item', ['DELETE']],
  ['/v1/orders', 'orders', null],
  ['/hosted', 'hosted', ['POST']],
  ['/checkin', 'checkin', ['POST']],
  ['/told', 'told', ['POST']],
  ['/trial', 'trial', ['POST']],
  ['/open', 'open', null],
];
