-- forget_replies
delete from answers where created_at < :before

-- begin_reply
insert into answers (caller, name, asked, created_at) values (:caller, :name, :asked, :now)
on conflict (caller, name) do nothing
returning name

-- kept_reply
select asked, status_code, location, body from answers where caller = :caller and name = :name

-- begin_reply_again
update answers set created_at = :now
where caller = :caller and name = :name and asked = :asked and status_code is null and created_at < :since
returning name

-- renew_reply
update answers set created_at = :now
where caller = :caller and name = :name and status_code is null
    and (created_at = :began or created_at = :now)
returning name

-- keep_reply
update answers set status_code = :status_code, location = :location, body = :body
where caller = :caller and name = :name and created_at = :began

-- forget_reply
delete from answers where caller = :caller and name = :name and created_at = :began

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
