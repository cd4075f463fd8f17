-- add_token
insert into tokens (name, digest, scope, sources, created_at, expires_at)
values (:name, :digest, :scope, :labels, :now, :until)
returning *

-- tokens
select * from tokens order by id

-- token_by_digest
select * from tokens where digest = :digest

-- any_token
select id from tokens limit 1

-- revoke_token
update tokens set revoked_at = coalesce(revoked_at, :now) where id = :number

-- add_login
insert into logins (digest, token_id, expires_at) values (:digest, :token, :until)

-- forget_logins
delete from logins
where expires_at <= :now or digest in (
    select digest from logins where token_id = :token order by expires_at desc, digest limit 1000000 offset :most
)

-- token_by_login
select t.*, l.digest as login from logins l join tokens t on t.id = l.token_id
where l.digest = :digest and l.expires_at > :now

-- end_login
delete from logins where digest = :digest

-- end_logins_of
delete from logins where token_id = :token
